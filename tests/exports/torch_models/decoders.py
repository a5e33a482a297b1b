"""Decoders: transducers, attention, Tacotron, captions, pointers, sampling, greedy and beam search."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..table import Family, bits, floats, integers

family = Family("decoders", ("script",))
WIDTH, HIDDEN, WORDS = 8, 12, 10


class GruCell(nn.Module):
    def __init__(self, inputs: int, hidden: int = HIDDEN):
        super().__init__()
        self.x, self.h = nn.Linear(inputs, 3 * hidden), nn.Linear(hidden, 3 * hidden)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        xr, xz, xn = self.x(x).chunk(3, -1)
        hr, hz, hn = self.h(h).chunk(3, -1)
        z = torch.sigmoid(xz + hz)
        return (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h


class LstmCell(nn.Module):
    def __init__(self, inputs: int, hidden: int = HIDDEN):
        super().__init__()
        self.gates = nn.Linear(inputs + hidden, 4 * hidden)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = self.gates(torch.cat([x, h], -1)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Predictor(nn.Module):
    """The prediction network of an RNN-T, one token a call."""

    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = (
            nn.Embedding(WORDS + 1, WIDTH),
            nn.LSTM(WIDTH, HIDDEN, num_layers=2, batch_first=True),
        )

    def forward(self, token: Tensor, h: Tensor, c: Tensor):
        y, (h, c) = self.lstm(self.embedding(token), (h, c))
        return y, h, c


class Joiner(nn.Module):
    """Every frame with every token."""

    def __init__(self):
        super().__init__()
        self.encoder, self.predictor, self.out = (
            nn.Linear(WIDTH, HIDDEN),
            nn.Linear(HIDDEN, HIDDEN),
            nn.Linear(HIDDEN, WORDS),
        )

    def forward(self, encoded: Tensor, predicted: Tensor) -> Tensor:
        both = self.encoder(encoded).unsqueeze(2) + self.predictor(predicted).unsqueeze(1)
        return torch.log_softmax(self.out(torch.tanh(both)), -1)


class StatelessPredictor(nn.Module):
    """The last two tokens, by a convolution; the context is a state."""

    def __init__(self):
        super().__init__()
        self.embedding, self.conv = nn.Embedding(WORDS, WIDTH), nn.Conv1d(WIDTH, WIDTH, 2, groups=4, bias=False)

    def forward(self, token: Tensor, context: Tensor):
        context = torch.cat([context[:, 1:], token], 1)
        return F.relu(self.conv(self.embedding(context).transpose(1, 2))).transpose(1, 2), context


class TransducerGreedy(nn.Module):
    """A loop over frames, within it one that emits tokens until a blank comes."""

    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.joint = (
            nn.Embedding(WORDS, WIDTH),
            GruCell(WIDTH),
            nn.Linear(WIDTH + HIDDEN, WORDS),
        )

    def forward(self, encoded: Tensor) -> Tensor:
        h = self.cell(self.embedding(torch.zeros(1, dtype=torch.int64)), torch.zeros(1, 12))
        tokens: list[Tensor] = []
        for t in range(encoded.size(0)):
            more = True
            emitted = 0
            while more and emitted < 3:
                token = self.joint(torch.cat([encoded[t : t + 1], h], 1)).argmax(1)
                more = bool((token != 0).all())
                if more:
                    h = self.cell(self.embedding(token), h)
                tokens.append(token)
                emitted += 1
        return torch.cat(tokens)


class TransducerGreedyBatch(nn.Module):
    """One symbol a frame for a whole batch, by masks: the form that exports well."""

    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.joint = (
            nn.Embedding(WORDS, WIDTH),
            GruCell(WIDTH),
            nn.Linear(WIDTH + HIDDEN, WORDS),
        )

    def forward(self, encoded: Tensor, h: Tensor, token: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tokens: list[Tensor] = []
        for t in range(encoded.size(1)):
            new = self.cell(self.embedding(token), h)
            best = self.joint(torch.cat([encoded[:, t], new], 1)).argmax(-1)
            emit = best > 0
            h = torch.where(emit.unsqueeze(1), new, h)
            token = torch.where(emit, best, token)
            tokens.append(best)
        return torch.stack(tokens, 1), h, token


class Additive(nn.Module):
    """Bahdanau's attention."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.score = (
            nn.Linear(HIDDEN, HIDDEN),
            nn.Linear(WIDTH, HIDDEN, bias=False),
            nn.Linear(HIDDEN, 1, bias=False),
        )

    def forward(self, h: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.score(torch.tanh(self.query(h).unsqueeze(1) + self.key(memory))).squeeze(-1)
        weights = torch.softmax(scores.masked_fill(~mask, -1e4), -1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1), weights


class AttentionDecoder(nn.Module):
    """Listen, attend and spell: teacher forcing, the context is fed in."""

    def __init__(self):
        super().__init__()
        self.embedding, self.attention = nn.Embedding(WORDS, WIDTH), Additive()
        self.cell, self.out = LstmCell(2 * WIDTH), nn.Linear(HIDDEN + WIDTH, WORDS)

    def forward(self, memory: Tensor, mask: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros(memory.size(0), 12)
        c = torch.zeros(memory.size(0), 12)
        context = torch.zeros(memory.size(0), 8)
        embedded = self.embedding(tokens)
        ys: list[Tensor] = []
        maps: list[Tensor] = []
        for t in range(tokens.size(1)):
            h, c = self.cell(torch.cat([embedded[:, t], context], -1), h, c)
            context, weights = self.attention(h, memory, mask)
            ys.append(self.out(torch.cat([h, context], -1)))
            maps.append(weights)
        return torch.stack(ys, 1), torch.stack(maps, 1)


class LuongGreedy(nn.Module):
    """Multiplicative attention, tokens by argmax, a given number of steps."""

    def __init__(self):
        super().__init__()
        self.embedding, self.cell = nn.Embedding(WORDS, WIDTH), GruCell(WIDTH)
        self.key, self.combine, self.out = (
            nn.Linear(WIDTH, HIDDEN),
            nn.Linear(WIDTH + HIDDEN, HIDDEN),
            nn.Linear(HIDDEN, WORDS),
        )

    def forward(self, memory: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        keys = self.key(memory)
        token = torch.ones(memory.size(0), dtype=torch.int64)
        tokens: list[Tensor] = []
        scores: list[Tensor] = []
        for _ in range(5):
            h = self.cell(self.embedding(token), h)
            weights = torch.softmax(torch.einsum("bh,bth->bt", h, keys), -1)
            context = torch.einsum("bt,btw->bw", weights, memory)
            logits = self.out(torch.tanh(self.combine(torch.cat([context, h], -1))))
            best, token = torch.log_softmax(logits, -1).max(-1)
            tokens.append(token)
            scores.append(best)
        return torch.stack(tokens, 1), torch.stack(scores, 1).sum(1)


class GreedyUntilEnd(nn.Module):
    """Stops when all rows have given the end token."""

    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(WORDS, WIDTH), GruCell(WIDTH), nn.Linear(HIDDEN, WORDS)

    def forward(self, h: Tensor) -> Tensor:
        token = torch.ones(h.size(0), dtype=torch.int64)
        done = torch.zeros(h.size(0), dtype=torch.bool)
        tokens = token.unsqueeze(1)
        step = 0
        while step < 8 and not bool(done.all()):
            h = self.cell(self.embedding(token), h)
            token = torch.where(done, torch.zeros_like(token), self.out(h).argmax(-1))
            done = done | (token == 0)
            tokens = torch.cat([tokens, token.unsqueeze(1)], 1)
            step += 1
        return tokens


class Tacotron(nn.Module):
    """Tacotron 2's decoder: pre-net, location-sensitive attention, two LSTMs, frames until the gate opens."""

    def __init__(self):
        super().__init__()
        self.prenet = nn.Sequential(nn.Linear(4, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.attention_cell, self.decoder_cell = LstmCell(2 * WIDTH), LstmCell(WIDTH + HIDDEN)
        self.query, self.key, self.place = (
            nn.Linear(HIDDEN, 6, bias=False),
            nn.Linear(WIDTH, 6, bias=False),
            nn.Linear(3, 6, bias=False),
        )
        self.location, self.score = nn.Conv1d(2, 3, 5, padding=2, bias=False), nn.Linear(6, 1, bias=False)
        self.frame, self.gate = nn.Linear(HIDDEN + WIDTH, 4), nn.Linear(HIDDEN + WIDTH, 1)

    def forward(self, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        b, n = memory.size(0), memory.size(1)
        keys = self.key(memory)
        h = torch.zeros(b, 12)
        c, h2, c2 = h, h, h
        context = torch.zeros(b, 8)
        weights = torch.zeros(b, n)
        total = torch.zeros(b, n)
        frame = torch.zeros(b, 4)
        frames: list[Tensor] = []
        gates: list[Tensor] = []
        maps: list[Tensor] = []
        going = True
        step = 0
        while going and step < 10:
            h, c = self.attention_cell(torch.cat([self.prenet(frame), context], -1), h, c)
            places = self.location(torch.stack([weights, total], 1)).transpose(1, 2)
            energies = self.score(torch.tanh(self.query(h.unsqueeze(1)) + self.place(places) + keys)).squeeze(-1)
            weights = torch.softmax(energies.masked_fill(~mask, -1e9), 1)
            total = total + weights
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            h2, c2 = self.decoder_cell(torch.cat([h, context], -1), h2, c2)
            both = torch.cat([h2, context], -1)
            frame = self.frame(both)
            gate = torch.sigmoid(self.gate(both)).squeeze(-1)
            frames.append(frame)
            gates.append(gate)
            maps.append(weights)
            going = bool((gate < 0.55).any())
            step += 1
        return torch.stack(frames, 1), torch.stack(gates, 1), torch.stack(maps, 1)


class TacotronStep(Tacotron):
    """One frame a call: all of the decoder's memory goes in and out."""

    def forward(
        self,
        frame: Tensor,
        memory: Tensor,
        h: Tensor,
        c: Tensor,
        h2: Tensor,
        c2: Tensor,
        context: Tensor,
        total: Tensor,
    ):
        h, c = self.attention_cell(torch.cat([self.prenet(frame), context], -1), h, c)
        places = self.location(torch.stack([total, total], 1)).transpose(1, 2)
        energies = self.score(torch.tanh(self.query(h.unsqueeze(1)) + self.place(places) + self.key(memory))).squeeze(
            -1
        )
        weights = torch.softmax(energies, 1)
        context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
        h2, c2 = self.decoder_cell(torch.cat([h, context], -1), h2, c2)
        both = torch.cat([h2, context], -1)
        return self.frame(both), torch.sigmoid(self.gate(both)), h, c, h2, c2, context, total + weights


class Pointer(nn.Module):
    """A pointer network: places that were chosen are masked out of the next choice."""

    def __init__(self):
        super().__init__()
        self.encoder, self.cell = nn.Linear(WIDTH, HIDDEN), LstmCell(WIDTH)
        self.query, self.key, self.score = (
            nn.Linear(HIDDEN, HIDDEN),
            nn.Linear(HIDDEN, HIDDEN),
            nn.Parameter(torch.randn(HIDDEN)),
        )

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        encoded = torch.tanh(self.encoder(points))
        keys = self.key(encoded)
        h = encoded.mean(1)
        c = torch.zeros_like(h)
        taken = torch.zeros(points.size(0), points.size(1), dtype=torch.bool)
        given = torch.zeros_like(points[:, 0])
        chosen: list[Tensor] = []
        total = torch.zeros(points.size(0))
        for _ in range(points.size(1)):
            h, c = self.cell(given, h, c)
            scores = (torch.tanh(self.query(h).unsqueeze(1) + keys) * self.score).sum(-1)
            logs = torch.log_softmax(scores.masked_fill(taken, -1e9), -1)
            where = logs.argmax(-1)
            total = total + logs.gather(1, where.unsqueeze(1)).squeeze(1)
            taken = taken | F.one_hot(where, points.size(1)).to(torch.bool)
            given = points.gather(1, where.view(-1, 1, 1).expand(-1, 1, 8)).squeeze(1)
            chosen.append(where)
        return torch.stack(chosen, 1), total


class Beam(nn.Module):
    """Beam search with an LSTM: scores, parents, states gathered by the beams that go on."""

    def __init__(self, width: int = 3):
        super().__init__()
        self.width = width
        self.embedding, self.cell, self.out = nn.Embedding(WORDS, WIDTH), LstmCell(WIDTH), nn.Linear(HIDDEN, WORDS)

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        h = state.repeat_interleave(3, dim=0)
        c = torch.zeros_like(h)
        b = state.size(0)
        start = torch.tensor([0.0, -1e9, -1e9])
        scores = start.unsqueeze(0).repeat(b, 1)
        token = torch.ones(b * 3, dtype=torch.int64)
        sequences = torch.zeros(b, 3, 0, dtype=torch.int64)
        offset = (torch.arange(b) * 3).unsqueeze(1)
        for _ in range(4):
            h, c = self.cell(self.embedding(token), h, c)
            logs = torch.log_softmax(self.out(h), -1).view(b, 3, 10)
            best, places = (scores.unsqueeze(-1) + logs).view(b, 30).topk(3, dim=1)
            parent = torch.div(places, 10, rounding_mode="floor")
            word = places - parent * 10
            rows = (parent + offset).view(-1)
            h, c = h.index_select(0, rows), c.index_select(0, rows)
            kept = sequences.view(b * 3, -1).index_select(0, rows).view(b, 3, -1)
            sequences = torch.cat([kept, word.unsqueeze(-1)], -1)
            scores, token = best, word.view(-1)
        return sequences, scores


class BeamParents(Beam):
    """The same with a list of parents, walked back at the end: no tensor grows."""

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        h = state.repeat_interleave(3, dim=0)
        c = torch.zeros_like(h)
        b = state.size(0)
        scores = torch.tensor([0.0, -1e9, -1e9]).unsqueeze(0).repeat(b, 1)
        token = torch.ones(b * 3, dtype=torch.int64)
        offset = (torch.arange(b) * 3).unsqueeze(1)
        words: list[Tensor] = []
        parents: list[Tensor] = []
        for _ in range(4):
            h, c = self.cell(self.embedding(token), h, c)
            logs = torch.log_softmax(self.out(h), -1).view(b, 3, 10)
            scores, places = (scores.unsqueeze(-1) + logs).view(b, 30).topk(3, dim=1)
            parent = torch.div(places, 10, rounding_mode="floor")
            rows = (parent + offset).view(-1)
            h, c = h[rows], c[rows]
            token = (places - parent * 10).view(-1)
            words.append(token.view(b, 3))
            parents.append(parent)
        all_words, all_parents = torch.stack(words), torch.stack(parents)
        place = torch.arange(3).unsqueeze(0).expand(b, 3)
        backwards: list[Tensor] = []
        for t in range(4):
            backwards.append(all_words[3 - t].gather(1, place))
            place = all_parents[3 - t].gather(1, place)
        return torch.stack(backwards).flip(0), scores


class WaveRnn(nn.Module):
    """A sample-rate network: coarse and fine halves of a sample, each by argmax from the last one."""

    def __init__(self):
        super().__init__()
        self.cell, self.coarse, self.fine = GruCell(WIDTH + 2), nn.Linear(HIDDEN, 16), nn.Linear(HIDDEN + 1, 16)

    def forward(self, mel: Tensor) -> Tensor:
        h = torch.zeros(mel.size(0), 12)
        last = torch.zeros(mel.size(0), 2)
        ys: list[Tensor] = []
        for t in range(mel.size(1) * 2):
            h = self.cell(torch.cat([mel[:, t // 2], last], 1), h)
            coarse = self.coarse(h).argmax(1, keepdim=True).to(torch.float32) / 8 - 1
            fine = self.fine(torch.cat([h, coarse], 1)).argmax(1, keepdim=True).to(torch.float32) / 8 - 1
            last = torch.cat([coarse, fine], 1)
            ys.append(coarse + fine / 16)
        return torch.cat(ys, 1)


class Captioner(nn.Module):
    """Show, attend and tell: soft attention over the places of an image, a gate on the context."""

    def __init__(self):
        super().__init__()
        self.cnn = nn.Conv2d(3, WIDTH, 3, stride=2)
        self.start, self.attention, self.beta = nn.Linear(WIDTH, HIDDEN), Additive(), nn.Linear(HIDDEN, WIDTH)
        self.embedding, self.cell, self.out = nn.Embedding(WORDS, WIDTH), LstmCell(2 * WIDTH), nn.Linear(HIDDEN, WORDS)

    def forward(self, image: Tensor, words: Tensor) -> Tensor:
        places = torch.relu(self.cnn(image)).flatten(2).transpose(1, 2)
        h = torch.tanh(self.start(places.mean(1)))
        c = torch.zeros_like(h)
        everywhere = torch.ones(places.size(0), places.size(1), dtype=torch.bool)
        embedded = self.embedding(words)
        ys: list[Tensor] = []
        for t in range(words.size(1)):
            context, _ = self.attention(h, places, everywhere)
            h, c = self.cell(torch.cat([embedded[:, t], torch.sigmoid(self.beta(h)) * context], 1), h, c)
            ys.append(self.out(h))
        return torch.stack(ys, 1)


class Handwriting(nn.Module):
    """A mixture density network over pen strokes, with a soft window that slides over the text."""

    def __init__(self):
        super().__init__()
        self.cell, self.window, self.out = LstmCell(3 + WORDS), nn.Linear(HIDDEN, 9), nn.Linear(HIDDEN + WORDS, 13)

    def forward(self, strokes: Tensor, text: Tensor):
        hot = F.one_hot(text, 10).to(torch.float32)
        place = torch.arange(text.size(1)).to(torch.float32)
        h = torch.zeros(strokes.size(0), 12)
        c = torch.zeros_like(h)
        kappa = torch.zeros(strokes.size(0), 3)
        seen = torch.zeros(strokes.size(0), 10)
        ys: list[Tensor] = []
        for t in range(strokes.size(1)):
            h, c = self.cell(torch.cat([strokes[:, t], seen], 1), h, c)
            alpha, beta, move = torch.exp(self.window(h)).chunk(3, 1)
            kappa = kappa + move
            phi = (alpha.unsqueeze(-1) * torch.exp(-beta.unsqueeze(-1) * (kappa.unsqueeze(-1) - place) ** 2)).sum(1)
            seen = torch.bmm(phi.unsqueeze(1), hot).squeeze(1)
            ys.append(self.out(torch.cat([h, seen], 1)))
        end, pi, mu, sigma, rho = torch.split(torch.stack(ys, 1), [1, 2, 4, 4, 2], -1)
        return torch.sigmoid(end), torch.softmax(pi, -1), mu, torch.exp(sigma), torch.tanh(rho)


MEMORY, MASK = floats("batch", "tokens", WIDTH), bits("batch", "tokens")
H = floats("batch", HIDDEN)
BOTH, VERSIONS = ("trace", "dynamo"), ("int8", "qdq", "qoperator", "float16")
family.add(
    "rnnt_predictor",
    Predictor,
    {"token": integers(WORDS, "batch", 1), "h_in": floats(2, "batch", HIDDEN), "c_in": floats(2, "batch", HIDDEN)},
    "y h_out c_out",
    {"h_in": "h_out", "c_in": "c_out"},
    BOTH,
    VERSIONS,
)
family.add(
    "rnnt_joiner",
    Joiner,
    {"encoded": floats("batch", "steps", WIDTH), "predicted": floats("batch", "tokens", HIDDEN)},
    exporters=BOTH,
    versions=VERSIONS,
)
family.add(
    "rnnt_stateless_predictor",
    StatelessPredictor,
    {"token": integers(WORDS, "batch", 1), "context_in": integers(WORDS, "batch", 2)},
    "y context_out",
    {"context_in": "context_out"},
    BOTH,
)
family.add("rnnt_greedy", TransducerGreedy, {"encoded": floats("steps", WIDTH)}, "tokens")
family.add(
    "rnnt_greedy_batch",
    TransducerGreedyBatch,
    {"encoded": floats("batch", "steps", WIDTH), "h_in": H, "token_in": integers(WORDS, "batch")},
    "tokens h_out token_out",
    {"h_in": "h_out", "token_in": "token_out"},
)
family.add(
    "attention_decoder",
    AttentionDecoder,
    {"memory": MEMORY, "mask": MASK, "tokens": integers(WORDS, "batch", "steps")},
    "logits weights",
    versions=("int8", "float16"),
)
family.add("luong_greedy", LuongGreedy, {"memory": MEMORY, "h": H}, "tokens score")
family.add("greedy_until_end", GreedyUntilEnd, {"h": H}, "tokens")
family.add("tacotron", Tacotron, {"memory": MEMORY, "mask": MASK}, "frames gates weights")
STATES = {
    "h_in": H,
    "c_in": H,
    "h2_in": H,
    "c2_in": H,
    "context_in": floats("batch", WIDTH),
    "total_in": floats("batch", "tokens"),
}
family.add(
    "tacotron_step",
    TacotronStep,
    {"frame": floats("batch", 4), "memory": MEMORY, **STATES},
    "mel gate h_out c_out h2_out c2_out context_out total_out",
    {name: name.replace("_in", "_out") for name in STATES},
    BOTH,
)
family.add("pointer_network", Pointer, {"points": floats("batch", "tokens", WIDTH)}, "chosen score")
family.add("beam_search", Beam, {"state": H}, "sequences scores")
family.add("beam_search_parents", BeamParents, {"state": H}, "sequences scores")
family.add("wave_rnn", WaveRnn, {"mel": floats("batch", "steps", WIDTH)})
family.add("captioner", Captioner, {"image": floats("batch", 3, 9, 9), "words": integers(WORDS, "batch", "steps")})
family.add(
    "handwriting",
    Handwriting,
    {"strokes": floats("batch", "steps", 3), "text": integers(WORDS, "batch", "tokens")},
    "end pi mu sigma rho",
)
