"""The testers of DP-Auditorium, one file each.

Reference: Kong, Muñoz Medina, Ribero, Syed, "DP-Auditorium: a Large Scale Library for Auditing
    Differential Privacy".
"""
