"""The testers of DP-Auditorium (Kong, Muñoz Medina, Ribero, Syed 2023), one file each.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy".
"""
