"""Trains web_demo/amp/crunch.nam: an LSTM of 16 units on an amp that is simulated here.

    python bench/train_amp.py web_demo/amp/crunch.nam --minutes 4

It needs torch and scipy. The amp: two stages of tanh with bias, a tone stack between them and a cabinet's low pass. The
signal: plucked strings, single notes and chords, at several levels. The file is written as Neural Amp Modeler's are.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from scipy.signal import butter, lfilter, sosfilt

RATE, UNITS, BATCH, STEPS = 48000, 16, 96, 512
PLAYED = [82.4, 110.0, 146.8, 196.0, 246.9, 329.6]


def plucked(rng, seconds, frequency):
    """A string that is plucked: noise in a loop that loses its high frequencies (Karplus and Strong)."""
    period = round(RATE / frequency)
    noise = rng.uniform(-1, 1, period)
    signal = np.zeros(int(seconds * RATE))
    signal[:period] = lfilter([0.4], [1, -0.6], noise)
    loss = 0.994 + 0.004 * rng.random()
    return lfilter([1.0], [1.0, *np.zeros(period - 1), -loss / 2, -loss / 2], signal)


def guitar(rng, seconds):
    """Notes and chords one behind the other, each at its own level, with pauses."""
    signal = np.zeros(int(seconds * RATE))
    at = 0
    while at < len(signal):
        length = rng.uniform(0.2, 1.2)
        tones = rng.choice(PLAYED, rng.integers(1, 4), replace=False) * 2 ** (rng.integers(0, 13) / 12)
        note = sum(plucked(rng, length, tone) for tone in tones)
        note *= rng.uniform(0.05, 1.0) / np.abs(note).max()
        end = min(len(signal), at + len(note))
        signal[at:end] += note[: end - at]
        at += int(rng.uniform(0.5, 1.1) * length * RATE)
    return np.clip(signal, -1, 1)


def amp(x):
    """What the model is to learn."""
    tight = sosfilt(butter(1, 90, "high", fs=RATE, output="sos"), x)
    first = np.tanh(6 * tight + 0.25) - np.tanh(0.25)
    mids = sosfilt(butter(1, [350, 900], "band", fs=RATE, output="sos"), first)
    tone = sosfilt(butter(1, 5500, "low", fs=RATE, output="sos"), first - 0.45 * mids)
    second = np.tanh(1.8 * tone - 0.15) - np.tanh(-0.15)
    return 0.6 * sosfilt(butter(2, 4200, "low", fs=RATE, output="sos"), second)


def rows(signal):
    """[batch, time]: the rows go on side by side."""
    length = len(signal) // BATCH
    return torch.tensor(signal[: BATCH * length].reshape(BATCH, length), dtype=torch.float32)


def emphasis(x):
    """More of the high frequencies, which are small and are heard."""
    return x[:, 1:] - 0.85 * x[:, :-1]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.core, self.head = torch.nn.LSTM(1, UNITS, batch_first=True), torch.nn.Linear(UNITS, 1)
        # from 10 to 1000 samples of memory; gates of half a unit would forget all within two
        memory = torch.logspace(1, 3, UNITS)
        self.core.bias_ih_l0.data[UNITS : 2 * UNITS] += memory.log()
        self.core.bias_ih_l0.data[:UNITS] -= memory.log()

    def forward(self, x, states=None):
        y, states = self.core(x[:, :, None], states)
        return self.head(y)[:, :, 0], states


def train(net, x, y, minutes):
    """By parts of the rows, with the states carried from one part to the next."""
    end, best = time.monotonic() + 60 * minutes, torch.optim.Adam(net.parameters(), lr=6e-3)
    began, epoch = time.monotonic(), 0
    while time.monotonic() < end:
        states, errors = None, []
        for at in range(0, x.shape[1] - STEPS, STEPS):
            done = (time.monotonic() - began) / (60 * minutes)
            for group in best.param_groups:
                group["lr"] = 6e-3 * max(0.01, (1 - done)) ** 1.5
            z, states = net(x[:, at : at + STEPS], states)
            states = tuple(state.detach() for state in states)
            wanted = y[:, at : at + STEPS]
            loss = (z - wanted).square().mean() + 2 * (emphasis(z) - emphasis(wanted)).square().mean()
            best.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            best.step()
            errors.append(loss.item())
            if time.monotonic() > end:
                break
        epoch += 1
        print(f"{epoch}: {np.mean(errors):.2e}", flush=True)


def exported(net, error):
    """The .nam file: weights, bias and the states after silence of each cell, then the head."""
    core, head = net.core, net.head
    with torch.no_grad():
        _, (h, c) = net(torch.zeros(1, RATE))
    parts = [torch.cat([core.weight_ih_l0, core.weight_hh_l0], 1), core.bias_ih_l0 + core.bias_hh_l0, h, c]
    parts += [head.weight, head.bias]
    weights = torch.cat([part.detach().reshape(-1) for part in parts]).numpy()
    return {
        "version": "0.5.4",
        "metadata": {
            "name": "webrnn crunch",
            "modeled_by": "webrnn",
            "gear_type": "amp_cab",
            "tone_type": "crunch",
            "licence": "that of webrnn",
            "training": {"error_to_signal": round(error, 5)},
        },
        "architecture": "LSTM",
        "config": {"input_size": 1, "hidden_size": UNITS, "num_layers": 1},
        "weights": [float(f"{weight:.7g}") for weight in weights],
        "sample_rate": RATE,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--minutes", type=float, default=4)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rng, net = np.random.default_rng(1), Net()
    x = guitar(rng, 240)
    train(net, rows(x), rows(amp(x)), arguments.minutes)
    fresh = guitar(rng, 10)
    with torch.no_grad():
        y = net(torch.tensor(fresh, dtype=torch.float32)[None])[0][0].numpy()
    error = float(np.square(y - amp(fresh)).sum() / np.square(amp(fresh)).sum())
    arguments.file.write_text(json.dumps(exported(net, error)) + "\n")
    print(f"{arguments.file}: {arguments.file.stat().st_size} bytes, error to signal {error:.4f}")


if __name__ == "__main__":
    main()
