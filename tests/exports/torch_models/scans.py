"""torch's own loops as operators (`scan`, `while_loop`, `cond`): the newer exporter makes Scan, Loop and If of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from ..table import Family, floats

family = Family("scans", ("dynamo",))
IN, HIDDEN = 8, 12


class ScanGru(nn.Module):
    def __init__(self, reverse: bool = False):
        super().__init__()
        self.x, self.h, self.reverse = nn.Linear(IN, 3 * HIDDEN), nn.Linear(HIDDEN, 3 * HIDDEN), reverse

    def forward(self, x: Tensor, h: Tensor):
        def step(h: Tensor, x: Tensor):
            xr, xz, xn = self.x(x).chunk(3, -1)
            hr, hz, hn = self.h(h).chunk(3, -1)
            z = torch.sigmoid(xz + hz)
            h = (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h
            return h, h.clone()

        h, y = scan(step, h, x, dim=0, reverse=self.reverse)
        return y, h


class ScanLstm(nn.Module):
    """Two states, two results, batch first."""

    def __init__(self):
        super().__init__()
        self.gates, self.out = nn.Linear(IN + HIDDEN, 4 * HIDDEN), nn.Linear(HIDDEN, 3)

    def forward(self, x: Tensor, h: Tensor, c: Tensor):
        def step(state, x: Tensor):
            h, c = state
            i, f, g, o = self.gates(torch.cat([x, h], -1)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            return (h, c), self.out(h)

        (h, c), y = scan(step, (h, c), x, dim=1)
        return y, h, c


class ScanDecay(nn.Module):
    """Two sequences in, an element-wise recurrence."""

    def forward(self, x: Tensor, gate: Tensor):
        def step(h: Tensor, given):
            x, gate = given
            h = torch.sigmoid(gate) * h + (1 - torch.sigmoid(gate)) * x
            return h, h * 2

        return scan(step, torch.zeros_like(x[0]), (x, gate), dim=0)


class WhileNewton(nn.Module):
    """Iterates until all rows have converged."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, h: Tensor):
        def more(count: Tensor, h: Tensor, change: Tensor):
            return torch.logical_and(count < 20, change > 1e-2)

        def body(count: Tensor, h: Tensor, change: Tensor):
            new = torch.tanh(self.f(h)) * 0.5
            return count + 1, new, (new - h).abs().max()

        count, h, _ = while_loop(more, body, (torch.tensor(0), h, torch.tensor(1.0)))
        return h, count


class WhileGreedy(nn.Module):
    """A greedy decoder: tokens in a tensor of known size, until all rows have ended."""

    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.out = (
            nn.Embedding(20, IN),
            nn.Linear(IN + HIDDEN, HIDDEN),
            nn.Linear(HIDDEN, 20),
        )

    def forward(self, h: Tensor):
        def more(step: Tensor, h: Tensor, token: Tensor, tokens: Tensor):
            return torch.logical_and(step < 8, (token != 0).any())

        def body(step: Tensor, h: Tensor, token: Tensor, tokens: Tensor):
            h = torch.tanh(self.cell(torch.cat([self.embedding(token), h], -1)))
            token = self.out(h).argmax(-1)
            places = torch.arange(8).unsqueeze(0)
            return step + 1, h, token, torch.where(places == step, token.unsqueeze(1), tokens)

        b = h.shape[0]
        start = (torch.tensor(0), h, torch.ones(b, dtype=torch.int64), torch.zeros(b, 8, dtype=torch.int64))
        return while_loop(more, body, start)[3]


class CondReset(nn.Module):
    """An If around a cell."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(IN + HIDDEN, HIDDEN)

    def forward(self, x: Tensor, h: Tensor):
        def run(x: Tensor, h: Tensor):
            return torch.tanh(self.cell(torch.cat([x, h], -1)))

        def rest(x: Tensor, h: Tensor):
            return h * 0.9

        h = torch.cond(x.abs().mean() > 0.8, run, rest, (x, h))
        return h * 2, h


X, H = floats("steps", "batch", IN), floats("batch", HIDDEN)
family.add("scan_gru", ScanGru, {"x": X, "h_in": H}, "y h_out", {"h_in": "h_out"}, versions=("float16",))
family.add("scan_gru_reverse", lambda: ScanGru(reverse=True), {"x": X, "h0": H}, "y h_last")
family.add(
    "scan_lstm",
    ScanLstm,
    {"x": floats("batch", "steps", IN), "h_in": H, "c_in": H},
    "y h_out c_out",
    {"h_in": "h_out", "c_in": "c_out"},
)
family.add("scan_decay", ScanDecay, {"x": X, "gate": X}, "last y")
family.add("while_newton", WhileNewton, {"h": H}, "h_end count")
family.add("while_greedy", WhileGreedy, {"h": H}, "tokens")
family.add("cond_reset", CondReset, {"x": floats("batch", IN), "h_in": H}, "y h_out", {"h_in": "h_out"})
