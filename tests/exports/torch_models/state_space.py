"""State-space models and gated linear recurrences, in parallel over time and step by step."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..table import Family, floats

family = Family("state_space", ("trace", "dynamo"))
WIDTH, STATE = 8, 4


class MinGru(nn.Module):
    """minGRU in log space: one cumulative sum and one logcumsumexp instead of a loop."""

    def __init__(self):
        super().__init__()
        self.gates, self.out = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        hidden, gate = self.gates(x).chunk(2, -1)
        log_a = -F.softplus(gate)
        log_g = torch.where(hidden >= 0, (F.relu(hidden) + 0.5).log(), -F.softplus(-hidden))
        a_star = log_a.cumsum(1)
        values = -F.softplus(-gate) + log_g - a_star
        top = values.amax(1, keepdim=True)
        return self.out((a_star + ((values - top).exp().cumsum(1)).log() + top).exp())


class MinGruStep(MinGru):
    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        hidden, gate = self.gates(x).chunk(2, -1)
        g = torch.where(hidden >= 0, hidden + 0.5, hidden.sigmoid())
        h = torch.lerp(h, g, gate.sigmoid())
        return self.out(h), h


class MinLstmLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        f, i, g = self.gates(x).chunk(3, -1)
        f, i = torch.sigmoid(f), torch.sigmoid(i)
        total = f + i
        f, i = f / total, i / total
        h = torch.zeros(x.size(0), 8)
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            h = f[:, t] * h + i[:, t] * g[:, t]
            ys.append(h)
        return torch.stack(ys, 1)


class Lru(nn.Module):
    """Linear recurrent unit: complex diagonal, kept as real and imaginary parts."""

    def __init__(self):
        super().__init__()
        self.nu, self.theta = nn.Parameter(torch.rand(STATE)), nn.Parameter(torch.rand(STATE) * 3)
        self.b_re, self.b_im = nn.Linear(WIDTH, STATE, bias=False), nn.Linear(WIDTH, STATE, bias=False)
        self.c_re, self.c_im = nn.Linear(STATE, WIDTH, bias=False), nn.Linear(STATE, WIDTH, bias=False)
        self.d = nn.Parameter(torch.randn(WIDTH))

    def step(self, x: Tensor, re: Tensor, im: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        size = torch.exp(-torch.exp(self.nu))
        a_re, a_im = size * torch.cos(self.theta), size * torch.sin(self.theta)
        gamma = torch.sqrt(1 - size * size)
        new_re = a_re * re - a_im * im + gamma * self.b_re(x)
        new_im = a_re * im + a_im * re + gamma * self.b_im(x)
        return self.c_re(new_re) - self.c_im(new_im) + self.d * x, new_re, new_im

    def forward(self, x: Tensor, re: Tensor, im: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            y, re, im = self.step(x[:, t], re, im)
            ys.append(y)
        return torch.stack(ys, 1), re, im


class LruStep(Lru):
    def forward(self, x: Tensor, re: Tensor, im: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.step(x, re, im)


class S4d(nn.Module):
    """S4D as a convolution: a Vandermonde kernel of known length, applied by padding."""

    def __init__(self, length: int = 6):
        super().__init__()
        self.length = length
        self.log_dt = nn.Parameter(torch.rand(WIDTH) - 2)
        self.log_a, self.a_im = (
            nn.Parameter(torch.rand(WIDTH, STATE)),
            nn.Parameter(math.pi * torch.arange(STATE).float().repeat(WIDTH, 1)),
        )
        self.c, self.d, self.mix = (
            nn.Parameter(torch.randn(WIDTH, STATE, 2)),
            nn.Parameter(torch.randn(WIDTH)),
            nn.Linear(WIDTH, 2 * WIDTH),
        )

    def forward(self, x: Tensor) -> Tensor:
        dt = torch.exp(self.log_dt).unsqueeze(-1)
        times = torch.arange(self.length).float()
        decay = torch.exp((-torch.exp(self.log_a) * dt).unsqueeze(-1) * times)
        angle = (self.a_im * dt).unsqueeze(-1) * times
        kernel = 2 * (decay * (self.c[..., 0:1] * torch.cos(angle) - self.c[..., 1:2] * torch.sin(angle))).sum(1)
        u = x.transpose(1, 2)
        y = (
            F.conv1d(F.pad(u, (self.length - 1, 0)), kernel.flip(-1).unsqueeze(1), groups=WIDTH)
            + self.d.unsqueeze(-1) * u
        )
        return F.glu(self.mix(F.gelu(y).transpose(1, 2)), -1)


class S5(nn.Module):
    """S5: a dense input matrix, the recurrence by an associative scan in log2(length) rounds of doubling."""

    def __init__(self):
        super().__init__()
        self.log_a, self.log_dt = nn.Parameter(torch.rand(STATE)), nn.Parameter(torch.rand(STATE) - 2)
        self.b, self.c, self.d = (
            nn.Linear(WIDTH, STATE, bias=False),
            nn.Linear(STATE, WIDTH, bias=False),
            nn.Parameter(torch.randn(WIDTH)),
        )

    def forward(self, x: Tensor) -> Tensor:
        a = torch.exp(-torch.exp(self.log_a) * torch.exp(self.log_dt))
        values = self.b(x) * (1 - a)
        decays = a.expand_as(values)
        for shift in (1, 2, 4):
            earlier = F.pad(values, (0, 0, shift, 0))[:, : values.size(1)]
            earlier_a = F.pad(decays, (0, 0, shift, 0), value=1.0)[:, : values.size(1)]
            values, decays = values + decays * earlier, decays * earlier_a
        return self.c(values) + self.d * x


class Mamba(nn.Module):
    """A Mamba block: a causal depthwise convolution and a selective scan, as a loop."""

    def __init__(self):
        super().__init__()
        inner = 2 * WIDTH
        self.enter = nn.Linear(WIDTH, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.select, self.dt = nn.Linear(inner, 2 + 2 * STATE, bias=False), nn.Linear(2, inner)
        self.log_a = nn.Parameter(torch.log(torch.arange(1, STATE + 1).float()).repeat(inner, 1))
        self.d, self.leave = nn.Parameter(torch.ones(inner)), nn.Linear(inner, WIDTH, bias=False)

    def parameters_of(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        dt, b, c = torch.split(self.select(x), [2, 4, 4], -1)
        return F.softplus(self.dt(dt)), b, c

    def forward(self, x: Tensor) -> Tensor:
        u, z = self.enter(x).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., : x.size(1)].transpose(1, 2))
        dt, b, c = self.parameters_of(u)
        a = -torch.exp(self.log_a)
        h = torch.zeros(x.size(0), 16, 4)
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            h = torch.exp(dt[:, t].unsqueeze(-1) * a) * h + (dt[:, t] * u[:, t]).unsqueeze(-1) * b[:, t].unsqueeze(1)
            ys.append((h * c[:, t].unsqueeze(1)).sum(-1))
        y = torch.stack(ys, 1) + u * self.d
        return self.leave(y * F.silu(z))


class MambaStep(Mamba):
    """One step: the last inputs of the convolution and the state of the scan are carried."""

    def forward(self, x: Tensor, conv: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, z = self.enter(x).chunk(2, -1)
        conv = torch.cat([conv[:, :, 1:], u.unsqueeze(-1)], -1)
        u = F.silu((conv * self.conv.weight.squeeze(1)).sum(-1) + self.conv.bias)
        dt, b, c = self.parameters_of(u)
        h = torch.exp(torch.einsum("bd,dn->bdn", dt, -torch.exp(self.log_a))) * h + torch.einsum(
            "bd,bn,bd->bdn", dt, b, u
        )
        y = torch.einsum("bdn,bn->bd", h, c) + self.d * u
        return self.leave(y * F.silu(z)), conv, h


class Mamba2(nn.Module):
    """Mamba-2 in chunks: within a chunk a masked product, between chunks a recurrence."""

    def __init__(self, heads: int = 2, chunk: int = 3):
        super().__init__()
        self.heads, self.chunk, self.head = heads, chunk, WIDTH // heads
        self.enter = nn.Linear(WIDTH, WIDTH + 2 * STATE + heads)
        self.log_a, self.norm = nn.Parameter(torch.rand(heads)), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        u, b, c, dt = torch.split(self.enter(x), [WIDTH, STATE, STATE, self.heads], -1)
        dt = F.softplus(dt)
        batch, chunks = x.size(0), x.size(1) // self.chunk
        u = (u.reshape(batch, -1, self.heads, self.head) * dt.unsqueeze(-1)).reshape(
            batch, chunks, self.chunk, self.heads, self.head
        )
        log_decay = (-torch.exp(self.log_a) * dt).reshape(batch, chunks, self.chunk, self.heads).permute(0, 3, 1, 2)
        b, c = b.reshape(batch, chunks, self.chunk, -1), c.reshape(batch, chunks, self.chunk, -1)
        total = log_decay.cumsum(-1)
        difference = total.unsqueeze(-1) - total.unsqueeze(-2)
        mask = torch.ones(self.chunk, self.chunk, dtype=torch.bool).tril()
        inside = difference.masked_fill(~mask, float("-inf")).exp()
        within = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b, inside, u)
        to_end = torch.exp(total[..., -1:] - total)
        states = torch.einsum("bcln,bhcl,bclhp->bchpn", b, to_end, u)
        carried = [torch.zeros_like(states[:, 0])]
        for index in range(2):
            carried.append(carried[-1] * total[:, :, index, -1].exp()[..., None, None] + states[:, index])
        before = torch.stack(carried[:-1], 1)
        across = torch.einsum("bcln,bchpn,bhcl->bclhp", c, before, total.exp())
        return self.norm((within + across).reshape(batch, -1, WIDTH))


class Griffin(nn.Module):
    """RG-LRU: gates of input and recurrence, decay as a power."""

    def __init__(self):
        super().__init__()
        self.gates, self.decay = nn.Linear(WIDTH, 2 * WIDTH), nn.Parameter(torch.randn(WIDTH))

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        r, i = torch.sigmoid(self.gates(x)).chunk(2, -1)
        a = torch.pow(torch.sigmoid(self.decay), 8.0 * r)
        given = torch.sqrt(1 - a * a) * i * x
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            h = a[:, t] * h + given[:, t]
            ys.append(h)
        return torch.stack(ys, 1), h


class Hgrn(nn.Module):
    """HGRN: lower bounds of forget gates grow with depth."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2)])
        self.gamma = nn.Parameter(torch.randn(2, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        bounds = torch.cumsum(torch.softmax(self.gamma, 0), 0)
        bounds = bounds - bounds[0]
        for index, layer in enumerate(self.layers):
            f, i, o = layer(x).chunk(3, -1)
            f = bounds[index] + (1 - bounds[index]) * torch.sigmoid(f)
            h = torch.zeros(x.size(0), 8)
            ys: list[Tensor] = []
            for t in range(x.size(1)):
                h = f[:, t] * h + (1 - f[:, t]) * F.silu(i[:, t])
                ys.append(h)
            x = x + torch.stack(ys, 1) * torch.sigmoid(o)
        return x


class Qrnn(nn.Module):
    """QRNN: convolutions over time, then a pooling that is a recurrence."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(WIDTH, 3 * WIDTH, 2)

    def forward(self, x: Tensor) -> Tensor:
        z, f, o = self.conv(F.pad(x.transpose(1, 2), (1, 0))).transpose(1, 2).chunk(3, 2)
        z, f = torch.tanh(z), torch.sigmoid(f)
        c = torch.zeros(x.size(0), 8)
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            c = f[:, t] * c + (1 - f[:, t]) * z[:, t]
            ys.append(c)
        return torch.sigmoid(o) * torch.stack(ys, 1)


X, FRAME = floats("batch", "steps", WIDTH), floats("batch", WIDTH)
H, LOOPS = floats("batch", WIDTH), ("script", "dynamo")
VERSIONS = ("int8", "qdq", "qoperator", "float16")
COMPLEX = {"re_in": floats("batch", STATE), "im_in": floats("batch", STATE)}
COMPLEX_STATES = {"re_in": "re_out", "im_in": "im_out"}
family.add("min_gru_parallel", MinGru, {"x": X}, versions=("int8", "float16"))
family.add("min_gru_step", MinGruStep, {"x": FRAME, "h_in": H}, "y h_out", {"h_in": "h_out"}, versions=VERSIONS)
family.add("min_lstm_loop", MinLstmLoop, {"x": X}, exporters=LOOPS)
family.add("lru_loop", Lru, {"x": X, **COMPLEX}, "y re_out im_out", COMPLEX_STATES, LOOPS)
family.add("lru_step", LruStep, {"x": FRAME, **COMPLEX}, "y re_out im_out", COMPLEX_STATES)
family.add("s4d_convolution", S4d, {"x": floats("batch", 6, WIDTH)}, versions=("float16",))
family.add("s5_associative_scan", S5, {"x": X})
family.add("mamba_loop", Mamba, {"x": X}, exporters=LOOPS, versions=("int8", "float16"))
family.add(
    "mamba_step",
    MambaStep,
    {"x": FRAME, "conv_in": floats("batch", 16, 4), "ssm_in": floats("batch", 16, STATE)},
    "y conv_out ssm_out",
    {"conv_in": "conv_out", "ssm_in": "ssm_out"},
    versions=VERSIONS,
)
family.add("mamba2_chunks", Mamba2, {"x": floats("batch", 6, WIDTH)})
family.add("griffin_loop", Griffin, {"x": X, "h_in": H}, "y h_out", {"h_in": "h_out"}, LOOPS)
family.add("hgrn_loop", Hgrn, {"x": X}, exporters=LOOPS)
family.add("qrnn_loop", Qrnn, {"x": X}, exporters=LOOPS)
