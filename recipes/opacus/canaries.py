"""One training with Opacus, and five hundred canaries in it: an audit of one run."""

import warnings

import torch
from opacus import PrivacyEngine
from opacus.accountants import PRVAccountant
from torch.utils.data import DataLoader, TensorDataset

import epsilometer as em

warnings.simplefilter("ignore")  # of hooks and of batches that are empty
torch.set_num_threads(2)

CANARIES = 500
FEATURES = 600
EPOCHS = 20
BATCH_SIZE = 50
CLAIMED_NOISE = 2.0

# Each canary is a record whose gradient points into a direction of its own, beyond the clip norm.
directions = em.models.gradient_canaries(FEATURES, CANARIES, seed=1)
ids = [f"canary {number}" for number in range(CANARIES)]


def train(noise_multiplier: float, coins: em.models.Coins) -> em.models.Recorder:
    """Trains on the canaries whose coins fell heads, and records what is released."""
    features = torch.tensor(10.0 * directions[coins.included])
    labels = torch.full((len(features), 1), -30.0, dtype=torch.float64)
    model = torch.nn.Linear(FEATURES, 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        data_loader=DataLoader(TensorDataset(features, labels), batch_size=BATCH_SIZE),
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
        loss_reduction="sum",
    )
    recorder = em.models.from_opacus(optimizer)
    for _ in range(EPOCHS):
        for batch, targets in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(batch), targets, reduction="sum")
            loss.backward()
            optimizer.step()
    return recorder


for name, noise_multiplier in (("right", CLAIMED_NOISE), ("too little noise", CLAIMED_NOISE / 8)):
    coins = em.models.coin_flips(ids)
    recorder = train(noise_multiplier, coins)
    rate = BATCH_SIZE / int(coins.included.sum())
    accountant = PRVAccountant()
    accountant.history = [(CLAIMED_NOISE, rate, len(recorder))]
    claim = em.TradeOffDP.from_accountant(accountant)

    along = recorder.scores(directions)
    scores = em.models.subsampled_score(along, rate, CLAIMED_NOISE)
    audit = em.from_one_run(*coins.join(dict(zip(ids, scores, strict=True))))
    print(f"{name}: {audit.check(claim).verdict}, μ ≥ {audit.mu:.2f}")
    if name == "too little noise":
        assert audit.check(claim).is_refuted
