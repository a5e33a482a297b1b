"""The ways to write a loop over time in TorchScript, beside the plain one that `cells.py` has for each cell."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..table import Family, bits, floats, lengths, positive

family = Family("loops", ("script",))
IN, HIDDEN = 8, 12


class Cell(nn.Module):
    def __init__(self, inputs: int = IN):
        super().__init__()
        self.x, self.h = nn.Linear(inputs, 3 * HIDDEN), nn.Linear(HIDDEN, 3 * HIDDEN)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        xr, xz, xn = self.x(x).chunk(3, -1)
        hr, hz, hn = self.h(h).chunk(3, -1)
        z = torch.sigmoid(xz + hz)
        return (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h


class WithCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()


class Unbound(WithCell):
    """`for frame in x.unbind(1)`."""

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(0), 12)
        ys: list[Tensor] = []
        for frame in x.unbind(1):
            h = self.cell(frame, h)
            ys += [h]
        return torch.stack(ys, dim=1)


class Concatenated(WithCell):
    """The result grows by `torch.cat` in each step."""

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        ys = torch.zeros(0, x.size(1), 12)
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            ys = torch.cat([ys, h.unsqueeze(0)], 0)
        return ys


class Preallocated(WithCell):
    """Results are written into a tensor that was made before."""

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        ys = torch.zeros(x.size(0), x.size(1), 12)
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            ys[t] = h
        return ys


class Backwards(WithCell):
    """From the last step to the first, stacked in the order of time again."""

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[x.size(0) - 1 - t], h)
            ys.append(h)
        return torch.stack(ys).flip(0)


class Bidirectional(nn.Module):
    def __init__(self):
        super().__init__()
        self.forth, self.back = Cell(), Cell()

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        g = torch.zeros(x.size(1), 12)
        hs: list[Tensor] = []
        gs: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.forth(x[t], h)
            hs.append(h)
        for t in range(x.size(0)):
            g = self.back(x[x.size(0) - t - 1], g)
            gs.append(g)
        return torch.cat([torch.stack(hs), torch.flip(torch.stack(gs), [0])], -1)


class Stacked(nn.Module):
    """Three cells above each other within one loop; states in one tensor."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = Cell(), Cell(HIDDEN), Cell(HIDDEN)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        a, b, c = h[0], h[1], h[2]
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            a = self.first(x[t], a)
            b = self.second(a, b) + a
            c = self.third(b, c) + b
            ys.append(c)
        return torch.stack(ys), torch.stack([a, b, c])


class ListOfStates(nn.Module):
    """States of layers in a list."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Cell(), Cell(HIDDEN)])

    def forward(self, x: Tensor) -> Tensor:
        ys: list[Tensor] = []
        states = [torch.zeros(x.size(1), 12), torch.zeros(x.size(1), 12)]
        for t in range(x.size(0)):
            y = x[t]
            new: list[Tensor] = []
            for index, layer in enumerate(self.layers):
                y = layer(y, states[index])
                new.append(y)
            states = new
            ys.append(y)
        return torch.stack(ys)


class Masked(WithCell):
    """Sequences of different lengths: beyond its end a state stays."""

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros(x.size(1), 12)
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            alive = (lengths > t).unsqueeze(1)
            h = torch.where(alive, self.cell(x[t], h), h)
            ys.append(h * alive)
        return torch.stack(ys), h


class WithReset(WithCell):
    """Episodes of a reinforcement learner: a mask sets states to zero."""

    def forward(self, x: Tensor, done: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h.masked_fill(done[t].unsqueeze(-1), 0.0))
            ys.append(h)
        return torch.stack(ys), h


class Decaying(nn.Module):
    """GRU-D: missing values decay to the mean, states decay with the time since the last one."""

    def __init__(self):
        super().__init__()
        self.cell, self.decay_x, self.decay_h = Cell(2 * IN), nn.Linear(IN, IN), nn.Linear(IN, HIDDEN)
        self.register_buffer("mean", torch.randn(IN))

    def forward(self, x: Tensor, mask: Tensor, delta: Tensor) -> Tensor:
        h = torch.zeros(x.size(0), 12)
        last = torch.zeros_like(x[:, 0])
        for t in range(x.size(1)):
            m = mask[:, t].to(x.dtype)
            d = delta[:, t]
            gamma = torch.exp(-torch.relu(self.decay_x(d)))
            last = torch.where(m > 0, x[:, t], last)
            given = m * x[:, t] + (1 - m) * (gamma * last + (1 - gamma) * self.mean)
            h = torch.exp(-torch.relu(self.decay_h(d))) * h
            h = self.cell(torch.cat([given, m], 1), h)
        return h


class Clockwork(WithCell):
    """Groups of units that are updated every second, every fourth step."""

    def __init__(self):
        super().__init__()
        self.register_buffer("period", torch.tensor([1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4]))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            h = torch.where(t % self.period == 0, self.cell(x[t], h), h)
            ys.append(h)
        return torch.stack(ys)


class Autoregressive(WithCell):
    """DeepAR and other forecasters: after what is given each result is the next input."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(12, IN)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        y = x[0]
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            y = self.out(h)
        for _ in range(5):
            h = self.cell(y, h)
            y = self.out(h)
            ys.append(y)
        return torch.stack(ys)


class Pondering(WithCell):
    """Adaptive computation time: a while loop within each step, until all of a batch are done."""

    def __init__(self):
        super().__init__()
        self.halt = nn.Linear(12, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            total = torch.zeros(x.size(1), 1)
            mean = torch.zeros_like(h)
            count = 0
            while bool((total < 0.99).any()) and count < 4:
                h = self.cell(x[t], h)
                p = torch.minimum(torch.sigmoid(self.halt(h)), 1 - total)
                mean = mean + p * h
                total = total + p
                count += 1
            h = mean
            ys.append(h)
        return torch.stack(ys)


class UntilConverged(WithCell):
    """A fixed point: a while loop whose end depends on the data."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros(x.size(0), 12)
        change = torch.ones(1)
        count = torch.zeros(1, dtype=torch.int64)
        while bool((change > 1e-2).all()) and bool((count < 20).all()):
            new = self.cell(x, h)
            change = (new - h).abs().max().reshape(1)
            h = new
            count = count + 1
        return h, count


class Branching(WithCell):
    """An `if` on data within the loop."""

    def __init__(self):
        super().__init__()
        self.other = Cell()

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            if bool(x[t].mean() > 0):
                h = self.cell(x[t], h)
            else:
                h = self.other(x[t], h)
            ys.append(h)
        return torch.stack(ys)


class Lookback(WithCell):
    """Skip connections through time: a step reads a state from two steps before, from the list."""

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        ys: list[Tensor] = [h, h]
        for t in range(x.size(0)):
            h = self.cell(x[t], h) + 0.5 * ys[t]
            ys.append(h)
        return torch.stack(ys)[2:]


class GrowingMemory(WithCell):
    """Attention over all states so far: the memory grows by one in each step."""

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 12)
        memory = h.unsqueeze(1)
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            weights = torch.softmax(torch.bmm(memory, h.unsqueeze(2)), 1)
            h = self.cell(x[t], h + (weights * memory).sum(1))
            memory = torch.cat([memory, h.unsqueeze(1)], 1)
            ys.append(h)
        return torch.stack(ys)


class Chunked(WithCell):
    """A hierarchical encoder: a loop over segments, and within it one over steps."""

    def __init__(self):
        super().__init__()
        self.upper = Cell(HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        top = torch.zeros(x.size(2), 12)
        ys: list[Tensor] = []
        for s in range(x.size(0)):
            h = top
            for t in range(x.size(1)):
                h = self.cell(x[s, t], h)
            top = self.upper(h, top)
            ys.append(top)
        return torch.stack(ys)


class SeveralResults(WithCell):
    """Two lists, one of them of numbers per row, and one value of the last step."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = torch.zeros(x.size(1), 12)
        ys: list[Tensor] = []
        norms: list[Tensor] = []
        best = torch.full([x.size(1)], -1e9)
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            ys.append(h)
            norms.append(torch.linalg.vector_norm(h, dim=1))
            best = torch.maximum(best, h.max(dim=1)[0])
        return torch.cat(ys, 1), torch.stack(norms, 1), best


class Counting(WithCell):
    """Keeps the state of the last step that a mask marks, and its index."""

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros(x.size(1), 12)
        kept, where = h, torch.zeros(x.size(1), dtype=torch.int64)
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            kept = torch.where(mask[t].unsqueeze(1), h, kept)
            where = torch.where(mask[t], torch.full_like(where, t), where)
        return kept, where


X, X_BATCH_FIRST = floats("steps", "batch", IN), floats("batch", "steps", IN)
family.add("loop_unbound", Unbound, {"x": X_BATCH_FIRST})
family.add("loop_concatenated", Concatenated, {"x": X})
family.add("loop_preallocated", Preallocated, {"x": X})
family.add("loop_backwards", Backwards, {"x": X})
family.add("loop_bidirectional", Bidirectional, {"x": X}, versions=("int8", "float16"))
family.add("loop_stacked", Stacked, {"x": X, "h_in": floats(3, "batch", HIDDEN)}, "y h_out", {"h_in": "h_out"})
family.add("loop_list_of_states", ListOfStates, {"x": X})
family.add("loop_masked", Masked, {"x": X, "lengths": lengths("steps", "batch")}, "y h")
family.add(
    "loop_with_reset",
    WithReset,
    {"x": X, "done": bits("steps", "batch"), "h_in": floats("batch", HIDDEN)},
    "y h_out",
    {"h_in": "h_out"},
)
family.add(
    "loop_gru_d",
    Decaying,
    {"x": X_BATCH_FIRST, "mask": bits("batch", "steps", IN), "delta": positive("batch", "steps", IN)},
)
family.add("loop_clockwork", Clockwork, {"x": X})
family.add("loop_autoregressive", Autoregressive, {"x": X})
family.add("loop_pondering", Pondering, {"x": X})
family.add("loop_until_converged", UntilConverged, {"x": floats("batch", IN)}, "h count")
family.add("loop_branching", Branching, {"x": X})
family.add("loop_lookback", Lookback, {"x": X})
family.add("loop_growing_memory", GrowingMemory, {"x": X})
family.add("loop_chunked", Chunked, {"x": floats(3, "steps", "batch", IN)})
family.add("loop_several_results", SeveralResults, {"x": X}, "y norms best")
family.add("loop_counting", Counting, {"x": X, "mask": bits("steps", "batch")}, "kept where")
