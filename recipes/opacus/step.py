"""One private step of Opacus as the mechanism: does it keep the curve of its accountant?"""

import warnings

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants import PRVAccountant
from torch.utils.data import DataLoader, TensorDataset

import epsilometer as em

warnings.simplefilter("ignore")  # of hooks and of batches that are empty
torch.set_num_threads(1)

FEATURES = 200
NOISE_MULTIPLIER = 1.0


def one_step(rows: np.ndarray, rng: np.random.Generator, reduction: str) -> np.ndarray:
    """Everything that has a state is made here, so that every run begins anew."""
    torch.manual_seed(int(rng.integers(2**31)))
    features, labels = torch.tensor(rows[:, :-1]), torch.tensor(rows[:, -1:])
    model = torch.nn.Linear(FEATURES, 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(features, labels), batch_size=4),
        noise_multiplier=NOISE_MULTIPLIER,
        max_grad_norm=1.0,
        loss_reduction=reduction,
    )
    recorder = em.models.from_opacus(optimizer)
    batch, targets = next(iter(loader))
    loss = torch.nn.functional.mse_loss(model(batch), targets, reduction=reduction)
    loss.backward()
    optimizer.step()
    return recorder.output()[0]


def averaged(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return one_step(rows, rng, "mean")


def summed(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return one_step(rows, rng, "sum")


# Nine records against the first eight of them. Batches of 4 mean a rate of 1/3 and 1/2; we claim
# what the larger one promises.
records = np.random.default_rng(0).normal(0.0, 0.01, size=(9, FEATURES + 1))
pair = em.Pair(records, records[:8])
accountant = PRVAccountant()
accountant.step(noise_multiplier=NOISE_MULTIPLIER, sample_rate=1 / 2)
claim = em.TradeOffDP.from_accountant(accountant)

# An average divides by the expected batch size, which is made of the private number of records.
broken = em.audit(averaged, pair, claim, samples=60, seed=0)
print("mean:", broken.verdict, "by", broken.witness.event.describe())

right = em.audit(summed, pair, claim, samples=60, seed=0)
print("sum:", right.verdict)

assert broken.is_refuted
assert not right.is_refuted
