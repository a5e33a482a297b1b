"""Search and sums over label sequences: CRF, CTC, alignments; trees and graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..table import Family, floats, integers, lengths

family = Family("structured", ("script",))
WIDTH, TAGS = 8, 5


class Crf(nn.Module):
    def __init__(self):
        super().__init__()
        self.transitions, self.start, self.end = (
            nn.Parameter(torch.randn(TAGS, TAGS)),
            nn.Parameter(torch.randn(TAGS)),
            nn.Parameter(torch.randn(TAGS)),
        )


class CrfLogPartition(Crf):
    """The forward algorithm, by logsumexp, with lengths."""

    def forward(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        alpha = self.start + emissions[:, 0]
        for t in range(1, emissions.size(1)):
            new = torch.logsumexp(alpha.unsqueeze(2) + self.transitions, 1) + emissions[:, t]
            alpha = torch.where((lengths > t).unsqueeze(1), new, alpha)
        return torch.logsumexp(alpha + self.end, 1)


class CrfViterbi(Crf):
    """The best path: scores forward, a list of pointers, and back along them."""

    def forward(self, emissions: Tensor) -> tuple[Tensor, Tensor]:
        score = self.start + emissions[:, 0]
        pointers: list[Tensor] = []
        for t in range(1, emissions.size(1)):
            best, where = (score.unsqueeze(2) + self.transitions).max(1)
            score = best + emissions[:, t]
            pointers.append(where)
        history = torch.stack(pointers)
        total, tag = (score + self.end).max(1)
        path: list[Tensor] = [tag]
        for t in range(history.size(0)):
            tag = history[history.size(0) - 1 - t].gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        return torch.stack(path, 1).flip(1), total


class Tagger(nn.Module):
    """BiLSTM-CRF: the score of given tags and the emissions."""

    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(30, WIDTH), nn.LSTM(WIDTH, 6, bidirectional=True, batch_first=True)
        self.out, self.crf = nn.Linear(12, TAGS), Crf()

    def forward(self, tokens: Tensor, tags: Tensor) -> tuple[Tensor, Tensor]:
        emissions = self.out(self.lstm(self.embedding(tokens))[0])
        score = emissions.gather(2, tags.unsqueeze(2)).squeeze(2).sum(1)
        score = score + self.crf.transitions[tags[:, :-1], tags[:, 1:]].sum(1)
        return score + self.crf.start[tags[:, 0]] + self.crf.end[tags[:, -1]], emissions


class CtcForward(nn.Module):
    """The sum over alignments of a label sequence: shifts by one and by two, blanks between."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        logs = torch.log_softmax(logits, -1)
        b = labels.size(0)
        blanks = torch.zeros_like(labels)
        extended = torch.cat([torch.stack([blanks, labels], 2).view(b, -1), blanks[:, :1]], 1)
        two_before = F.pad(extended, (2, 0), value=-1.0)[:, : extended.size(1)]
        skip = (extended != 0) & (extended != two_before)
        start = torch.arange(extended.size(1)).unsqueeze(0) < 2
        alpha = torch.where(start, logs[:, 0].gather(1, extended), torch.full_like(extended, -100).to(logs.dtype))
        for t in range(1, logs.size(1)):
            one = F.pad(alpha, (1, 0), value=-100.0)[:, :-1]
            two = F.pad(alpha, (2, 0), value=-100.0)[:, :-2]
            two = torch.where(skip, two, torch.full_like(two, -100.0))
            alpha = torch.logsumexp(torch.stack([alpha, one, two]), 0) + logs[:, t].gather(1, extended)
        return torch.logsumexp(alpha[:, -2:], 1)


class CtcGreedy(nn.Module):
    """The best class of each frame, repeats and blanks dropped: how many there are is known only afterwards."""

    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(WIDTH, 6, batch_first=True), nn.Linear(6, TAGS)

    def forward(self, x: Tensor) -> Tensor:
        best = self.out(self.gru(x)[0]).argmax(-1)[0]
        keep = torch.cat([best[:1] != 0, (best[1:] != best[:-1]) & (best[1:] != 0)])
        return best[keep]


class MonotonicAlignment(nn.Module):
    """Glow-TTS: the most probable monotonic path, by dynamic programming over frames."""

    def forward(self, scores: Tensor) -> Tensor:
        n = scores.size(1)
        value = torch.full_like(scores[:, :, 0], -1e9)
        first = torch.arange(n) == 0
        value = torch.where(first, scores[:, :, 0], value)
        for t in range(1, scores.size(2)):
            above = F.pad(value, (1, 0), value=-1e9)[:, :n]
            value = torch.maximum(value, above) + scores[:, :, t]
        return value[:, -1]


class SoftDtw(nn.Module):
    """Soft dynamic time warping by rows."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        distance = (a.unsqueeze(2) - b.unsqueeze(1)).pow(2).sum(-1)
        row = torch.cumsum(distance[:, 0], 1)
        for t in range(1, a.size(1)):
            best = torch.minimum(row, F.pad(row, (1, 0), value=1e9)[:, :-1])
            row = best + distance[:, t]
        return row[:, -1]


class TreeGru(nn.Module):
    """Shift and reduce: a stack in a tensor, operations given as numbers."""

    def __init__(self):
        super().__init__()
        self.merge = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, words: Tensor, operations: Tensor) -> Tensor:
        stack = torch.zeros(words.size(0) + 2, 8)
        top = torch.full([1], 2, dtype=torch.int64)
        following = torch.zeros(1, dtype=torch.int64)
        last = words.size(0) - 1
        for t in range(operations.size(0)):
            pair = torch.cat([stack.index_select(0, top - 2), stack.index_select(0, top - 1)], 1)
            shift = operations[t] == 0
            word = words.index_select(0, following.clamp(max=last))
            new = torch.where(shift, word, torch.tanh(self.merge(pair)))
            place = torch.where(shift, top, (top - 2).clamp(min=1)).clamp(max=last + 1)
            stack = stack.index_copy(0, place, new)
            top = (place + 1).clamp(min=2)
            following = following + shift.to(torch.int64)
        return stack.index_select(0, top - 1)


class GatedGraph(nn.Module):
    """GGNN: messages along edges are scattered to nodes, a GRU updates them, some rounds."""

    def __init__(self):
        super().__init__()
        self.message, self.cell = nn.Linear(WIDTH, WIDTH), nn.GRUCell(WIDTH, WIDTH)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        for _ in range(3):
            messages = self.message(nodes)[edges[0]]
            sums = torch.zeros_like(nodes).index_add(0, edges[1], messages)
            nodes = self.cell(sums, nodes)
        return nodes


EMISSIONS = floats("batch", "steps", TAGS)
family.add(
    "crf_log_partition",
    CrfLogPartition,
    {"emissions": EMISSIONS, "lengths": lengths("steps", "batch")},
    exporters=("script", "dynamo"),
)
family.add("crf_viterbi", CrfViterbi, {"emissions": EMISSIONS}, "path score", exporters=("script", "dynamo"))
family.add(
    "crf_tagger",
    Tagger,
    {"tokens": integers(30, "batch", "steps"), "tags": integers(TAGS, "batch", "steps")},
    "score emissions",
    exporters=("trace", "dynamo"),
)
family.add("ctc_forward", CtcForward, {"logits": EMISSIONS, "labels": integers(TAGS, "batch", 2, low=1)})
family.add("ctc_greedy", CtcGreedy, {"x": floats(1, "steps", WIDTH)}, exporters=("trace", "dynamo"))
family.add("monotonic_alignment", MonotonicAlignment, {"scores": floats("batch", "tokens", "steps")})
family.add("soft_dtw", SoftDtw, {"a": floats("batch", "steps", 3), "b": floats("batch", "tokens", 3)})
family.add("tree_gru", TreeGru, {"words": floats("tokens", WIDTH), "operations": integers(2, "steps")})
family.add(
    "gated_graph",
    GatedGraph,
    {"nodes": floats("tokens", WIDTH), "edges": integers(5, 2, "steps")},
    exporters=("trace", "dynamo"),
)
