"""Other models with recurrence: forecasting, control, language, world models, transformers with memory."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..table import Family, bits, floats, integers, lengths

family = Family("sequence_models", ("trace", "dynamo"))
WIDTH, HIDDEN = 8, 12


class Seq2Seq(nn.Module):
    """Encoder and decoder with Luong attention over all steps at once, teacher forcing."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(30, WIDTH), nn.Embedding(30, WIDTH)
        self.encoder, self.decoder = nn.GRU(WIDTH, HIDDEN, batch_first=True), nn.GRU(WIDTH, HIDDEN, batch_first=True)
        self.out = nn.Linear(2 * HIDDEN, 30)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, h = self.encoder(self.source(source))
        y, _ = self.decoder(self.target(target), h)
        weights = torch.softmax(y @ memory.transpose(1, 2), -1)
        return self.out(torch.cat([weights @ memory, y], -1))


class Lstnet(nn.Module):
    """Convolution, GRU, a GRU that skips, and a linear part."""

    def __init__(self, skip: int = 2):
        super().__init__()
        self.skip = skip
        self.conv, self.gru, self.gru_skip = nn.Conv2d(1, 6, (3, 4)), nn.GRU(6, 8), nn.GRU(6, 3)
        self.out, self.highway = nn.Linear(8 + 3 * skip, 4), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        b = x.size(0)
        c = F.relu(self.conv(x.unsqueeze(1))).squeeze(3)
        h = self.gru(c.permute(2, 0, 1))[1].squeeze(0)
        n = c.size(2) // self.skip
        s = c[:, :, -n * self.skip :].reshape(b, 6, n, self.skip).permute(2, 0, 3, 1).reshape(n, b * self.skip, 6)
        s = self.gru_skip(s)[1].reshape(b, -1)
        z = self.highway(x[:, -3:].permute(0, 2, 1).reshape(-1, 3)).view(-1, 4)
        return self.out(torch.cat([h, s], 1)) + z


class GatedResidual(nn.Module):
    def __init__(self, width: int = HIDDEN):
        super().__init__()
        self.one, self.two, self.gate, self.norm = (
            nn.Linear(width, width),
            nn.Linear(width, width),
            nn.Linear(width, 2 * width),
            nn.LayerNorm(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + F.glu(self.gate(self.two(F.elu(self.one(x)))), -1))


class TemporalFusion(nn.Module):
    """TFT: variable selection, LSTM encoder and decoder, masked self-attention, quantiles."""

    def __init__(self):
        super().__init__()
        self.each, self.weights = nn.ModuleList([nn.Linear(1, HIDDEN) for _ in range(3)]), nn.Linear(3, 3)
        self.encoder, self.decoder = (
            nn.LSTM(HIDDEN, HIDDEN, batch_first=True),
            nn.LSTM(HIDDEN, HIDDEN, batch_first=True),
        )
        self.enrich, self.attention = GatedResidual(), nn.MultiheadAttention(HIDDEN, 2, batch_first=True)
        self.after, self.out = GatedResidual(), nn.Linear(HIDDEN, 3)

    def select(self, x: Tensor) -> Tensor:
        parts = torch.stack([layer(x[..., i : i + 1]) for i, layer in enumerate(self.each)], -1)
        return (parts * torch.softmax(self.weights(x), -1).unsqueeze(-2)).sum(-1)

    def forward(self, past: Tensor, future: Tensor) -> Tensor:
        y, state = self.encoder(self.select(past))
        z, _ = self.decoder(self.select(future), state)
        x = self.enrich(torch.cat([y, z], 1))
        n = x.size(1)
        later = torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
        x = self.after(x + self.attention(x, x, x, attn_mask=later, need_weights=False)[0])
        return self.out(x[:, past.size(1) :])


class Policy(nn.Module):
    """A recurrent actor and critic: image and number in, LSTM with a reset, logits and value out."""

    def __init__(self):
        super().__init__()
        self.eye = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten())
        self.lstm, self.actor, self.critic = nn.LSTMCell(6 + 2, HIDDEN), nn.Linear(HIDDEN, 4), nn.Linear(HIDDEN, 1)

    def forward(self, image: Tensor, speed: Tensor, first: Tensor, h: Tensor, c: Tensor):
        keep = 1 - first.to(h.dtype).unsqueeze(1)
        h, c = self.lstm(torch.cat([self.eye(image), speed], 1), (h * keep, c * keep))
        logits = self.actor(h)
        return logits.argmax(1), torch.log_softmax(logits, 1), self.critic(h).squeeze(1), h, c


class WorldModel(nn.Module):
    """RSSM: a GRU for what is certain, categorical variables for what is not (their mode), prior and posterior."""

    def __init__(self):
        super().__init__()
        self.enter, self.cell = nn.Linear(16 + 3, HIDDEN), nn.GRUCell(HIDDEN, HIDDEN)
        self.prior, self.posterior, self.reward = (
            nn.Linear(HIDDEN, 16),
            nn.Linear(HIDDEN + WIDTH, 16),
            nn.Linear(HIDDEN + 16, 1),
        )

    def forward(self, observation: Tensor, action: Tensor, deter: Tensor, stoch: Tensor):
        deter = self.cell(F.elu(self.enter(torch.cat([stoch.flatten(1), action], 1))), deter)
        logits = self.posterior(torch.cat([deter, observation], 1)).view(-1, 4, 4)
        stoch = F.one_hot(logits.argmax(-1), 4).to(deter.dtype)
        return self.reward(torch.cat([deter, stoch.flatten(1)], 1)), self.prior(deter), deter, stoch


class TransformerXl(nn.Module):
    """Segment recurrence: the states of the last segment are keys and values of this one."""

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm, self.ff = nn.LayerNorm(WIDTH), nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH))

    def forward(self, x: Tensor, memory: Tensor):
        b, t, _ = x.shape
        both = torch.cat([memory, x], 1)
        q = self.q(x).view(b, t, 2, 4).transpose(1, 2)
        k, v = (each.reshape(b, -1, 2, 4).transpose(1, 2) for each in self.kv(both).chunk(2, -1))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, -1)
        x = self.norm(x + self.out(y))
        return x + self.ff(x), both[:, -4:]


class KeyValueCache(nn.Module):
    """A causal layer with a cache that grows by what comes in."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, past_key: Tensor, past_value: Tensor):
        b, t, _ = x.shape
        q, k, v = (each.reshape(b, t, 2, 4).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        scores = q @ k.transpose(-1, -2) / 2
        place = torch.arange(k.size(2))
        later = place > place[-t:].unsqueeze(1) if t > 1 else torch.zeros(1, 1, dtype=torch.bool)
        y = torch.softmax(scores.masked_fill(later, -1e9), -1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, -1)), k, v


class StreamingConvolutions(nn.Module):
    """A causal TCN with its past as states, one frame or some a call."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(WIDTH, WIDTH, 3, dilation=d) for d in (1, 2)])
        self.norm = nn.GroupNorm(2, WIDTH)

    def forward(self, x: Tensor, past1: Tensor, past2: Tensor):
        pasts = []
        for conv, past in zip(self.convs, (past1, past2), strict=True):
            joined = torch.cat([past, x], 2)
            pasts.append(joined[:, :, -past.size(2) :])
            x = x + F.mish(conv(joined))
        return x, *pasts


class CharacterWords(nn.Module):
    """ELMo's kind: convolutions over characters, highway, bidirectional LSTM with a projection."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(26, 5)
        self.convs = nn.ModuleList([nn.Conv1d(5, 4, k) for k in (1, 2, 3)])
        self.highway, self.lstm = nn.Linear(12, 24), nn.LSTM(12, 8, bidirectional=True, batch_first=True)

    def forward(self, characters: Tensor) -> Tensor:
        b, w, _ = characters.shape
        x = self.embedding(characters.flatten(0, 1)).transpose(1, 2)
        x = torch.cat([F.relu(conv(x)).max(-1)[0] for conv in self.convs], -1)
        y, gate = self.highway(x).chunk(2, -1)
        x = torch.sigmoid(gate) * F.relu(y) + (1 - torch.sigmoid(gate)) * x
        return self.lstm(x.view(b, w, -1))[0]


class BiAttention(nn.Module):
    """BiDAF: similarity of every word with every word, attention both ways, start and end of an answer."""

    def __init__(self):
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(30, WIDTH), nn.LSTM(WIDTH, 6, bidirectional=True, batch_first=True)
        self.similarity, self.model, self.span = (
            nn.Linear(36, 1),
            nn.LSTM(48, 6, bidirectional=True, batch_first=True),
            nn.Linear(12, 2),
        )

    def forward(self, text: Tensor, question: Tensor):
        c, q = self.encoder(self.embedding(text))[0], self.encoder(self.embedding(question))[0]
        n, m = c.size(1), q.size(1)
        left, right = c.unsqueeze(2).expand(-1, -1, m, -1), q.unsqueeze(1).expand(-1, n, -1, -1)
        s = self.similarity(torch.cat([left, right, left * right], -1)).squeeze(-1)
        a = torch.softmax(s, -1) @ q
        b = (torch.softmax(s.max(-1)[0], -1).unsqueeze(1) @ c).expand(-1, n, -1)
        y = self.span(self.model(torch.cat([c, a, c * a, c * b], -1))[0])
        start, end = y.unbind(-1)
        return start, end, start.argmax(-1), end.argmax(-1)


class Hierarchical(nn.Module):
    """HAN: words to sentences to a document, attention at both levels."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, WIDTH)
        self.words, self.sentences = (
            nn.GRU(WIDTH, 6, bidirectional=True, batch_first=True),
            nn.GRU(12, 6, bidirectional=True, batch_first=True),
        )
        self.word_score, self.sentence_score, self.out = nn.Linear(12, 1), nn.Linear(12, 1), nn.Linear(12, 3)

    def forward(self, text: Tensor) -> Tensor:
        b, s, w = text.shape
        y = self.words(self.embedding(text.reshape(b * s, w)))[0]
        y = (torch.softmax(self.word_score(torch.tanh(y)), 1) * y).sum(1).reshape(b, s, -1)
        y = self.sentences(y)[0]
        return self.out((torch.softmax(self.sentence_score(torch.tanh(y)), 1) * y).sum(1))


class Variational(nn.Module):
    """A sequence VAE in evaluation: mean and spread, the decoder starts from the latent."""

    def __init__(self):
        super().__init__()
        self.encoder, self.latent = nn.GRU(WIDTH, HIDDEN, batch_first=True), nn.Linear(HIDDEN, 8)
        self.start, self.decoder, self.out = (
            nn.Linear(4, HIDDEN),
            nn.GRU(4, HIDDEN, batch_first=True),
            nn.Linear(HIDDEN, WIDTH),
        )

    def forward(self, x: Tensor):
        mean, log_spread = self.latent(self.encoder(x)[1][0]).chunk(2, -1)
        h = torch.tanh(self.start(mean)).unsqueeze(0)
        y = self.decoder(mean.unsqueeze(1).repeat(1, x.size(1), 1), h)[0]
        return self.out(y), mean, torch.exp(0.5 * log_spread)


class Recommender(nn.Module):
    """GRU4Rec: the last step that counts, by gather; scores of all items, and the best of them."""

    def __init__(self):
        super().__init__()
        self.items, self.gru = nn.Embedding(20, WIDTH, padding_idx=0), nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, clicks: Tensor, lengths: Tensor):
        y = self.gru(self.items(clicks))[0]
        last = y.gather(1, (lengths - 1).view(-1, 1, 1).expand(-1, 1, y.size(2))).squeeze(1)
        scores = last @ self.items.weight.t()
        best, which = scores.topk(5, dim=1)
        return scores, best, which


X, VERSIONS = floats("batch", "steps", WIDTH), ("int8", "qdq", "qoperator", "float16")
family.add(
    "seq2seq",
    Seq2Seq,
    {"source": integers(30, "batch", "tokens"), "target": integers(30, "batch", "steps")},
    versions=VERSIONS,
)
family.add("lstnet", Lstnet, {"x": floats("batch", 10, 4)}, versions=VERSIONS)
family.add(
    "temporal_fusion",
    TemporalFusion,
    {"past": floats("batch", "steps", 3), "future": floats("batch", "tokens", 3)},
    versions=("int8", "float16"),
)
family.add(
    "policy",
    Policy,
    {
        "image": floats("batch", 3, 7, 7),
        "speed": floats("batch", 2),
        "first": bits("batch"),
        "h_in": floats("batch", HIDDEN),
        "c_in": floats("batch", HIDDEN),
    },
    "action log_probabilities value h_out c_out",
    {"h_in": "h_out", "c_in": "c_out"},
)
family.add(
    "world_model",
    WorldModel,
    {
        "observation": floats("batch", WIDTH),
        "action": floats("batch", 3),
        "deter_in": floats("batch", HIDDEN),
        "stoch_in": floats("batch", 4, 4),
    },
    "reward prior deter_out stoch_out",
    {"deter_in": "deter_out", "stoch_in": "stoch_out"},
)
family.add(
    "transformer_xl",
    TransformerXl,
    {"x": X, "memory_in": floats("batch", 4, WIDTH)},
    "y memory_out",
    {"memory_in": "memory_out"},
    versions=("int8", "float16"),
)
CACHE = floats("batch", 2, "tokens", 4)
family.add(
    "key_value_cache",
    KeyValueCache,
    {"x": floats("batch", 1, WIDTH), "past_key": CACHE, "past_value": CACHE},
    "y present_key present_value",
    {"past_key": "present_key", "past_value": "present_value"},
)
family.add(
    "streaming_tcn",
    StreamingConvolutions,
    {
        "x": floats("batch", WIDTH, "steps"),
        "past1_in": floats("batch", WIDTH, 2),
        "past2_in": floats("batch", WIDTH, 4),
    },
    "y past1_out past2_out",
    {"past1_in": "past1_out", "past2_in": "past2_out"},
    versions=VERSIONS,
)
family.add("character_words", CharacterWords, {"characters": integers(26, "batch", "tokens", 7)}, versions=("qdq",))
family.add(
    "bi_attention",
    BiAttention,
    {"text": integers(30, "batch", "steps"), "question": integers(30, "batch", "tokens")},
    "start end first last",
)
family.add("hierarchical", Hierarchical, {"text": integers(30, "batch", "tokens", "steps")})
family.add("variational", Variational, {"x": X}, "y mean spread")
family.add(
    "recommender",
    Recommender,
    {"clicks": integers(20, "batch", "steps"), "lengths": lengths("steps", "batch")},
    "scores best which",
)
