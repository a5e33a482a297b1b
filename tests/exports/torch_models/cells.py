"""Cells that people write themselves, each as one step (its state an input and an output) and in a scripted loop."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..table import Family, floats

family = Family("cells", ("script", "dynamo"))
IN, HIDDEN = 8, 12


class Elman(nn.Module):
    def __init__(self):
        super().__init__()
        self.x, self.h = nn.Linear(IN, HIDDEN), nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.x(x) + self.h(h))


class Gru(nn.Module):
    def __init__(self, norm: bool = False):
        super().__init__()
        self.x, self.h = nn.Linear(IN, 3 * HIDDEN), nn.Linear(HIDDEN, 3 * HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN) if norm else nn.Identity()

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        xr, xz, xn = self.x(x).chunk(3, -1)
        hr, hz, hn = self.h(h).chunk(3, -1)
        z = torch.sigmoid(xz + hz)
        n = torch.tanh(self.norm(xn + torch.sigmoid(xr + hr) * hn))
        return (1 - z) * n + z * h


class MinimalGated(nn.Module):
    """MGU: one gate."""

    def __init__(self):
        super().__init__()
        self.f, self.n = nn.Linear(IN + HIDDEN, HIDDEN), nn.Linear(IN + HIDDEN, HIDDEN)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        f = torch.sigmoid(self.f(torch.cat([x, h], 1)))
        return torch.lerp(h, torch.tanh(self.n(torch.cat([x, f * h], 1))), f)


class Independent(nn.Module):
    """IndRNN: each unit sees only itself."""

    def __init__(self):
        super().__init__()
        self.x, self.u = nn.Linear(IN, HIDDEN), nn.Parameter(torch.rand(HIDDEN))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return F.relu(self.x(x) + self.u * h)


class Antisymmetric(nn.Module):
    def __init__(self):
        super().__init__()
        self.x, self.w = nn.Linear(IN, HIDDEN), nn.Parameter(torch.randn(HIDDEN, HIDDEN) / 4)
        self.register_buffer("damping", 0.01 * torch.eye(HIDDEN))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return h + 0.1 * torch.tanh(h @ (self.w - self.w.t() - self.damping) + self.x(x))


class LiquidTimeConstant(nn.Module):
    """LTC: some fused steps of an ODE solver within each step."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(IN + HIDDEN, HIDDEN)
        self.a, self.tau = nn.Parameter(torch.randn(HIDDEN)), nn.Parameter(torch.rand(HIDDEN) + 0.5)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        for _ in range(3):
            f = torch.sigmoid(self.f(torch.cat([x, h], -1)))
            h = (h + 0.2 * f * self.a) / (1 + 0.2 * (1 / F.softplus(self.tau) + f))
        return h


class ClosedFormContinuous(nn.Module):
    """CfC: an LTC solved by a formula."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(IN + HIDDEN, 16), nn.SiLU())
        self.heads = nn.Linear(16, 4 * HIDDEN)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        a, b, fast, slow = self.heads(self.backbone(torch.cat([x, h], 1))).chunk(4, 1)
        gate = torch.sigmoid(-fast * 0.1 + slow)
        return torch.tanh(a) * (1 - gate) + torch.tanh(b) * gate


class Highway(nn.Module):
    """Recurrent highway network, depth 2."""

    def __init__(self):
        super().__init__()
        self.x = nn.Linear(IN, 2 * HIDDEN)
        self.layers = nn.ModuleList([nn.Linear(HIDDEN, 2 * HIDDEN) for _ in range(2)])

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        given = self.x(x)
        for layer in self.layers:
            a, t = (given + layer(h)).chunk(2, 1)
            t = torch.sigmoid(t)
            h = torch.tanh(a) * t + h * (1 - t)
            given = torch.zeros_like(given)
        return h


class EchoState(nn.Module):
    """A reservoir with leaky units and sparse fixed weights."""

    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randn(HIDDEN, HIDDEN) * (torch.rand(HIDDEN, HIDDEN) < 0.3) * 0.5)
        self.register_buffer("w_in", torch.rand(HIDDEN, IN) - 0.5)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return 0.7 * h + 0.3 * torch.tanh(F.linear(x, self.w_in) + F.linear(h, self.w))


class FastGrnn(nn.Module):
    """FastGRNN: gate and candidate share their weights."""

    def __init__(self):
        super().__init__()
        self.w, self.u = nn.Linear(IN, HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.bias_z, self.bias_h = nn.Parameter(torch.ones(1, HIDDEN)), nn.Parameter(torch.ones(1, HIDDEN))
        self.zeta, self.nu = nn.Parameter(torch.ones(1, 1)), nn.Parameter(-4 * torch.ones(1, 1))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        both = self.w(x) + self.u(h)
        z = torch.sigmoid(both + self.bias_z)
        scale = torch.sigmoid(self.zeta) * (1 - z) + torch.sigmoid(self.nu)
        return z * h + scale * torch.tanh(both + self.bias_h)


class Lstm(nn.Module):
    """With the options that papers add: layer norms, peepholes, coupled gates, a projection, zoneout."""

    def __init__(self, norm=False, peephole=False, coupled=False, out: int = HIDDEN, zoneout=0.0, mogrify: int = 0):
        super().__init__()
        self.x, self.h = nn.Linear(IN, 4 * HIDDEN), nn.Linear(out, 4 * HIDDEN, bias=False)
        self.norm = nn.LayerNorm(4 * HIDDEN) if norm else nn.Identity()
        self.norm_c = nn.LayerNorm(HIDDEN) if norm else nn.Identity()
        self.peep = nn.Parameter(torch.randn(3, HIDDEN) if peephole else torch.zeros(3, HIDDEN))
        self.project = nn.Linear(HIDDEN, out, bias=False) if out != HIDDEN else nn.Identity()
        self.coupled, self.zoneout, self.mogrify = bool(coupled), float(zoneout), mogrify
        self.q, self.r = nn.Linear(out, IN), nn.Linear(IN, out)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        old_h, old_c = h, c
        for index in range(self.mogrify):
            if index % 2 == 0:
                x = 2 * torch.sigmoid(self.q(h)) * x
            else:
                h = 2 * torch.sigmoid(self.r(x)) * h
        i, f, g, o = self.norm(self.x(x) + self.h(h)).chunk(4, 1)
        i = torch.sigmoid(i + self.peep[0] * c)
        f = 1 - i if self.coupled else torch.sigmoid(f + self.peep[1] * c)
        c = f * c + i * torch.tanh(g)
        h = self.project(torch.sigmoid(o + self.peep[2] * c) * torch.tanh(self.norm_c(c)))
        if self.zoneout > 0:
            h = self.zoneout * old_h + (1 - self.zoneout) * h
            c = self.zoneout * old_c + (1 - self.zoneout) * c
        return h, c


class OrderedNeurons(nn.Module):
    """ON-LSTM: master gates by cumulative softmax."""

    def __init__(self):
        super().__init__()
        self.gates, self.masters = nn.Linear(IN + HIDDEN, 4 * HIDDEN), nn.Linear(IN + HIDDEN, 2 * 4)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        both = torch.cat([x, h], 1)
        masters = self.masters(both)
        m_f = torch.cumsum(torch.softmax(masters[:, :4], -1), -1).repeat_interleave(3, dim=-1)
        m_i = (1 - torch.cumsum(torch.softmax(masters[:, 4:], -1), -1)).repeat_interleave(3, dim=-1)
        i, f, g, o = self.gates(both).chunk(4, 1)
        overlap = m_f * m_i
        f = torch.sigmoid(f) * overlap + (m_f - overlap)
        i = torch.sigmoid(i) * overlap + (m_i - overlap)
        c = f * c + i * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Sru(nn.Module):
    """SRU: the recurrence is element-wise."""

    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Linear(IN, 4 * HIDDEN), nn.Parameter(torch.randn(2, HIDDEN))

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        u, f, r, skip = self.w(x).chunk(4, 1)
        f, r = torch.sigmoid(f + self.v[0] * c), torch.sigmoid(r + self.v[1] * c)
        c = f * c + (1 - f) * u
        return r * c + (1 - r) * skip + 0 * h, c


class Oscillatory(nn.Module):
    """coRNN: position and velocity of coupled oscillators."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(IN + 2 * HIDDEN, HIDDEN)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        c = c + 0.05 * (torch.tanh(self.f(torch.cat([x, c, h], 1))) - 2.7 * h - 4.7 * c)
        return h + 0.05 * c, c


class LegendreMemory(nn.Module):
    """LMU: a linear memory of the recent past beside the hidden state."""

    def __init__(self, order: int = 6):
        super().__init__()
        q = torch.arange(order).float()
        r = (2 * q + 1).unsqueeze(1) / 20
        sign = torch.where(q.unsqueeze(1) < q, -torch.ones(order, order), (-1.0) ** (q.unsqueeze(1) - q + 1))
        self.register_buffer("a", torch.matrix_exp(r * sign))
        self.register_buffer("b", (r * (-1.0) ** q.unsqueeze(1)).squeeze(1))
        self.u, self.k = nn.Linear(IN + HIDDEN + order, 1), nn.Linear(IN + HIDDEN + order, HIDDEN)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        u = self.u(torch.cat((x, h, c), 1))
        c = c @ self.a.t() + u * self.b
        return torch.tanh(self.k(torch.cat((x, h, c), 1))), c


class FastWeights(nn.Module):
    """A matrix that remembers recent states, read by an inner loop."""

    def __init__(self):
        super().__init__()
        self.x, self.h, self.norm = nn.Linear(IN, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.LayerNorm(HIDDEN)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        boundary = self.x(x) + self.h(h)
        c = 0.9 * c + 0.5 * torch.einsum("bi,bj->bij", h, h)
        h = F.relu(boundary)
        for _ in range(2):
            h = F.relu(self.norm(boundary + torch.bmm(c, h.unsqueeze(-1)).squeeze(-1)))
        return h, c


class TuringMachine(nn.Module):
    """NTM: a memory that is addressed by content, erased and added to."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.controller = nn.Linear(IN + width + HIDDEN, HIDDEN)
        self.key, self.strength, self.change = (
            nn.Linear(HIDDEN, width),
            nn.Linear(HIDDEN, 1),
            nn.Linear(HIDDEN, 2 * width),
        )

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        key = torch.tanh(self.key(h)).unsqueeze(1)
        match = F.cosine_similarity(c + 1e-6, key, dim=-1)
        weight = torch.softmax(F.softplus(self.strength(h)) * match, -1)
        read = torch.matmul(weight.unsqueeze(1), c).squeeze(1)
        h = torch.tanh(self.controller(torch.cat([x, read, h], 1)))
        erase, add = self.change(h).chunk(2, 1)
        where = weight.unsqueeze(-1)
        return h, c * (1 - where * torch.sigmoid(erase).unsqueeze(1)) + where * torch.tanh(add).unsqueeze(1)


class Loop(nn.Module):
    """A cell over all steps: a list that is appended to and stacked, as everybody writes it."""

    def __init__(self, cell: nn.Module):
        super().__init__()
        self.cell, self.out = cell, nn.Linear(HIDDEN, 3)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            ys.append(h)
        return self.out(torch.stack(ys)), h


class LoopOfPair(nn.Module):
    def __init__(self, cell: nn.Module, hidden: int = HIDDEN):
        super().__init__()
        self.cell, self.out = cell, nn.Linear(hidden, 3)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            h, c = self.cell(x[t], h, c)
            ys.append(h)
        return self.out(torch.stack(ys)), h, c


class Step(nn.Module):
    def __init__(self, cell: nn.Module):
        super().__init__()
        self.cell, self.out = cell, nn.Linear(HIDDEN, 3)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        h = self.cell(x, h)
        return self.out(h), h


class StepOfPair(nn.Module):
    def __init__(self, cell: nn.Module, hidden: int = HIDDEN):
        super().__init__()
        self.cell, self.out = cell, nn.Linear(hidden, 3)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h, c = self.cell(x, h, c)
        return self.out(h), h, c


H = floats("batch", HIDDEN)
SEQUENCE, FRAME = floats("steps", "batch", IN), floats("batch", IN)
QUANTIZED = ("int8", "qdq", "qoperator", "float16")

for name, cell in {
    "elman": Elman,
    "gru_by_hand": Gru,
    "gru_layer_norm": lambda: Gru(norm=True),
    "minimal_gated": MinimalGated,
    "independent_rnn": Independent,
    "antisymmetric": Antisymmetric,
    "liquid_time_constant": LiquidTimeConstant,
    "closed_form_continuous": ClosedFormContinuous,
    "recurrent_highway": Highway,
    "echo_state": EchoState,
    "fast_grnn": FastGrnn,
}.items():
    states = {"h_in": "h_out"}
    versions = QUANTIZED if name in ("gru_by_hand", "liquid_time_constant") else ()
    family.add(
        f"{name}_loop", lambda cell=cell: Loop(cell()), {"x": SEQUENCE, "h_in": H}, "y h_out", states, versions=versions
    )
    family.add(
        f"{name}_step",
        lambda cell=cell: Step(cell()),
        {"x": FRAME, "h_in": H},
        "y h_out",
        states,
        ("trace", "dynamo"),
        versions,
    )

for name, cell, h, c in (
    ("lstm_by_hand", Lstm, H, H),
    ("lstm_layer_norm", lambda: Lstm(norm=True), H, H),
    ("lstm_peephole", lambda: Lstm(peephole=True), H, H),
    ("lstm_coupled_zoneout", lambda: Lstm(coupled=True, zoneout=0.1), H, H),
    ("lstm_mogrifier", lambda: Lstm(mogrify=3), H, H),
    ("lstm_projected_by_hand", lambda: Lstm(out=5), floats("batch", 5), H),
    ("ordered_neurons", OrderedNeurons, H, H),
    ("sru", Sru, H, H),
    ("oscillatory", Oscillatory, H, H),
    ("legendre_memory", LegendreMemory, H, floats("batch", 6)),
    ("fast_weights", FastWeights, H, floats("batch", HIDDEN, HIDDEN)),
    ("turing_machine", TuringMachine, H, floats("batch", 5, 6)),
):
    hidden = int(h.shape[1])
    states = {"h_in": "h_out", "c_in": "c_out"}
    inputs = {"h_in": h, "c_in": c}
    versions = QUANTIZED if name in ("lstm_by_hand", "turing_machine") else ()
    family.add(
        f"{name}_loop",
        lambda cell=cell, hidden=hidden: LoopOfPair(cell(), hidden),
        {"x": SEQUENCE, **inputs},
        "y h_out c_out",
        states,
        versions=versions,
    )
    family.add(
        f"{name}_step",
        lambda cell=cell, hidden=hidden: StepOfPair(cell(), hidden),
        {"x": FRAME, **inputs},
        "y h_out c_out",
        states,
        ("trace", "dynamo"),
        versions,
    )
