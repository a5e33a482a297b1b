"""Recurrent attention: RWKV, RetNet, gated and delta-rule linear attention, xLSTM, test-time training."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..table import Family, floats

family = Family("linear_attention", ("script", "dynamo"))
WIDTH, HEADS, HEAD = 8, 2, 4


class Rwkv4(nn.Module):
    """Time mixing of RWKV-4: numerator, denominator and the largest exponent so far."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.rand(3, WIDTH))
        self.decay, self.first = nn.Parameter(torch.rand(WIDTH)), nn.Parameter(torch.rand(WIDTH))
        self.k, self.v, self.r, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: Tensor, before: Tensor, a: Tensor, b: Tensor, p: Tensor):
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            now = x[:, t]
            k = self.k(now * self.mix[0] + before * (1 - self.mix[0]))
            v = self.v(now * self.mix[1] + before * (1 - self.mix[1]))
            r = torch.sigmoid(self.r(now * self.mix[2] + before * (1 - self.mix[2])))
            before = now
            q = torch.maximum(p, self.first + k)
            e, f = torch.exp(p - q), torch.exp(self.first + k - q)
            ys.append(self.o(r * (e * a + f * v) / (e * b + f)))
            q = torch.maximum(p - torch.exp(self.decay), k)
            e, f = torch.exp(p - torch.exp(self.decay) - q), torch.exp(k - q)
            a, b, p = e * a + f * v, e * b + f, q
        return torch.stack(ys, 1), before, a, b, p


class Projections(nn.Module):
    def __init__(self, more: int = 0):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.gate = nn.Linear(WIDTH, WIDTH)
        self.more = nn.Linear(WIDTH, max(1, more))
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def heads(self, x: Tensor) -> Tensor:
        return x.view(x.size(0), x.size(1), 2, 4)

    def finish(self, y: Tensor, x: Tensor) -> Tensor:
        normed = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.out(normed.reshape(x.size(0), x.size(1), 8) * F.silu(self.gate(x)))


class Rwkv6(Projections):
    """Data-dependent decay and a bonus for the present token; the state is a matrix per head."""

    def __init__(self):
        super().__init__(WIDTH)
        self.bonus = nn.Parameter(torch.randn(HEADS, HEAD))

    def forward(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        r, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        w = self.heads(torch.exp(-torch.exp(self.more(x))))
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            kv = k[:, t].unsqueeze(-1) @ v[:, t].unsqueeze(-2)
            ys.append((r[:, t].unsqueeze(-2) @ (s + self.bonus.unsqueeze(-1) * kv)).squeeze(-2))
            s = w[:, t].unsqueeze(-1) * s + kv
        return self.finish(torch.stack(ys, 1), x), s


class Rwkv7(Projections):
    """The generalized delta rule."""

    def __init__(self):
        super().__init__(2 * WIDTH)

    def forward(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        r, v = self.heads(self.q(x)), self.heads(self.v(x))
        k = F.normalize(self.heads(self.k(x)), dim=-1)
        w, a = self.more(x).chunk(2, -1)
        w, a = self.heads(torch.exp(-0.6 * torch.sigmoid(w))), self.heads(torch.sigmoid(a))
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            kt = k[:, t].unsqueeze(-2)
            removed = (s @ kt.transpose(-1, -2)) @ (kt * a[:, t].unsqueeze(-2))
            s = s * w[:, t].unsqueeze(-2) - removed + v[:, t].unsqueeze(-1) @ kt
            ys.append((s @ r[:, t].unsqueeze(-1)).squeeze(-1))
        return self.finish(torch.stack(ys, 1), x), s


class RetNet(Projections):
    """Retention as a recurrence with a fixed decay per head."""

    def __init__(self):
        super().__init__()
        self.register_buffer("decay", 1 - 2.0 ** (-5 - torch.arange(HEADS).float()).view(1, HEADS, 1, 1))

    def forward(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)) * 0.5, self.heads(self.v(x))
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            s = self.decay * s + torch.einsum("bhk,bhv->bhkv", k[:, t], v[:, t])
            ys.append(torch.einsum("bhk,bhkv->bhv", q[:, t], s))
        return self.finish(torch.stack(ys, 1), x), s


class RetNetParallel(RetNet):
    """The same for a whole sequence at once, with a matrix of decays."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.heads(each(x)).transpose(1, 2) for each in (self.q, self.k, self.v))
        place = torch.arange(x.size(1))
        distance = (place.unsqueeze(1) - place.unsqueeze(0)).to(x.dtype)
        decays = torch.where(distance >= 0, self.decay ** distance.clamp(min=0), torch.zeros(()))
        y = (q @ (k * 0.5).transpose(-1, -2) * decays) @ v
        return self.finish(y.transpose(1, 2), x)


class GatedLinear(Projections):
    """GLA: a gate per key channel."""

    def __init__(self):
        super().__init__(WIDTH)

    def forward(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        g = self.heads(F.logsigmoid(self.more(x)) / 16.0).exp()
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            s = s * g[:, t, :, :, None] + k[:, t, :, :, None] * v[:, t, :, None, :]
            ys.append((q[:, t, :, :, None] * s).sum(-2))
        return self.finish(torch.stack(ys, 1), x), s


class DeltaNet(Projections):
    """The delta rule: what a key recalls is replaced, with or without a gate on the whole memory."""

    def __init__(self, gated: bool = False):
        super().__init__(2 * HEADS)
        self.gated = gated

    def forward(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        q, k = F.normalize(self.heads(F.silu(self.q(x))), dim=-1), F.normalize(self.heads(F.silu(self.k(x))), dim=-1)
        v = self.heads(F.silu(self.v(x)))
        beta, gate = torch.sigmoid(self.more(x)).chunk(2, -1)
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            if self.gated:
                s = s * gate[:, t, :, None, None]
            recalled = torch.einsum("bhkv,bhk->bhv", s, k[:, t])
            s = s + torch.einsum("bhk,bhv->bhkv", k[:, t], beta[:, t].unsqueeze(-1) * (v[:, t] - recalled))
            ys.append(torch.einsum("bhkv,bhk->bhv", s, q[:, t]))
        return self.finish(torch.stack(ys, 1), x), s


class LinearAttention(Projections):
    """Kernel feature maps and a running normalizer, for a whole sequence by cumulative sums."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = F.elu(self.heads(self.q(x))) + 1, F.elu(self.heads(self.k(x))) + 1, self.heads(self.v(x))
        kv = torch.cumsum(torch.einsum("bthk,bthv->bthkv", k, v), 1)
        total = torch.einsum("bthk,bthk->bth", q, torch.cumsum(k, 1)).unsqueeze(-1)
        return self.finish(torch.einsum("bthk,bthkv->bthv", q, kv) / (total + 1e-6), x)


class SLstm(nn.Module):
    """sLSTM of xLSTM: exponential gates, a normalizer and a stabilizer, block-diagonal recurrence."""

    def __init__(self):
        super().__init__()
        self.x, self.r = nn.Linear(WIDTH, 4 * WIDTH), nn.Parameter(torch.randn(4, HEADS, HEAD, HEAD) / 4)

    def forward(self, x: Tensor, h: Tensor, c: Tensor, n: Tensor, m: Tensor):
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            back = torch.einsum("bhi,ghij->gbhj", h.view(-1, 2, 4), self.r).reshape(4, -1, 8)
            z, i, f, o = (self.x(x[:, t]).view(-1, 4, 8).transpose(0, 1) + back).unbind(0)
            f = F.logsigmoid(f)
            top = torch.maximum(f + m, i)
            keep, take = torch.exp(f + m - top), torch.exp(i - top)
            c, n, m = keep * c + take * torch.tanh(z), keep * n + take, top
            h = torch.sigmoid(o) * c / n
            ys.append(h)
        return torch.stack(ys, 1), h, c, n, m


class MLstm(Projections):
    """mLSTM of xLSTM: a matrix memory with exponential gates."""

    def __init__(self):
        super().__init__(2 * HEADS)

    def forward(self, x: Tensor, c: Tensor, n: Tensor, m: Tensor):
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)) * 0.5, self.heads(self.v(x))
        i, f = self.more(x).chunk(2, -1)
        f = F.logsigmoid(f)
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            top = torch.maximum(f[:, t] + m, i[:, t])
            keep, take = torch.exp(f[:, t] + m - top).unsqueeze(-1), torch.exp(i[:, t] - top).unsqueeze(-1)
            c = keep.unsqueeze(-1) * c + (take * k[:, t]).unsqueeze(-1) * v[:, t].unsqueeze(-2)
            n = keep * n + take * k[:, t]
            m = top
            scale = torch.maximum((n * q[:, t]).sum(-1).abs(), torch.exp(-m)).unsqueeze(-1)
            ys.append((q[:, t].unsqueeze(-2) @ c).squeeze(-2) / scale)
        return self.finish(torch.stack(ys, 1), x), c, n, m


class MLstmParallel(Projections):
    """The same for a whole sequence: a matrix of sums of log gates."""

    def __init__(self):
        super().__init__(2 * HEADS)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.heads(each(x)).transpose(1, 2) for each in (self.q, self.k, self.v))
        i, f = self.more(x).transpose(1, 2).chunk(2, 1)
        sums = F.logsigmoid(f).cumsum(-1)
        logs = sums.unsqueeze(-1) - sums.unsqueeze(-2) + i.unsqueeze(-2)
        causal = torch.tril(torch.ones(x.size(1), x.size(1), dtype=torch.bool))
        logs = logs.masked_fill(~causal, float("-inf"))
        top = logs.max(-1, keepdim=True)[0]
        scores = (q @ k.transpose(-1, -2) * 0.5) * torch.exp(logs - top)
        scale = torch.maximum(scores.sum(-1, keepdim=True).abs(), torch.exp(-top))
        return self.finish(((scores / scale) @ v).transpose(1, 2), x)


class TestTimeTraining(Projections):
    """TTT: the state is a weight matrix that takes a step of gradient descent with each token."""

    def forward(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        rate = torch.sigmoid(self.more(x))
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            error = torch.matmul(k[:, t].unsqueeze(2), s) - v[:, t].unsqueeze(2)
            s = s - rate[:, t].view(-1, 1, 1, 1) * torch.matmul(k[:, t].unsqueeze(3), error)
            ys.append(torch.matmul(q[:, t].unsqueeze(2), s).squeeze(2))
        return self.finish(torch.stack(ys, 1), x), s


X, H = floats("batch", "steps", WIDTH), floats("batch", WIDTH)
MATRIX = floats("batch", HEADS, HEAD, HEAD)
family.add(
    "rwkv4",
    Rwkv4,
    {"x": X, "shift_in": H, "num_in": H, "den_in": H, "max_in": H},
    "y shift_out num_out den_out max_out",
    {f"{name}_in": f"{name}_out" for name in ("shift", "num", "den", "max")},
    versions=("float16",),
)
for name, make in {
    "rwkv6": Rwkv6,
    "rwkv7": Rwkv7,
    "retnet": RetNet,
    "gated_linear_attention": GatedLinear,
    "delta_net": DeltaNet,
    "gated_delta_net": lambda: DeltaNet(gated=True),
    "test_time_training": TestTimeTraining,
}.items():
    versions = ("int8", "float16") if name in ("delta_net", "rwkv6") else ()
    family.add(name, make, {"x": X, "state_in": MATRIX}, "y state_out", {"state_in": "state_out"}, versions=versions)
    one = {"x": floats("batch", 1, WIDTH), "state_in": MATRIX}
    family.add(f"{name}_one_step", make, one, "y state_out", {"state_in": "state_out"}, ("trace",))
family.add("retnet_parallel", RetNetParallel, {"x": X}, exporters=("trace", "dynamo"))
family.add("linear_attention_parallel", LinearAttention, {"x": X}, exporters=("trace", "dynamo"))
family.add(
    "xlstm_slstm",
    SLstm,
    {"x": X, "h_in": H, "c_in": H, "n_in": H, "m_in": H},
    "y h_out c_out n_out m_out",
    {f"{name}_in": f"{name}_out" for name in "hcnm"},
)
family.add(
    "xlstm_mlstm",
    MLstm,
    {"x": X, "c_in": MATRIX, "n_in": floats("batch", HEADS, HEAD), "m_in": floats("batch", HEADS)},
    "y c_out n_out m_out",
    {f"{name}_in": f"{name}_out" for name in "cnm"},
)
family.add("xlstm_mlstm_parallel", MLstmParallel, {"x": X}, exporters=("trace", "dynamo"))
