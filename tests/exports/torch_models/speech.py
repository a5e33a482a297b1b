"""Speech: denoisers, voice activity, keywords, recognizers' encoders and speaker embeddings."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..table import Family, floats, positive

family = Family("speech", ("trace", "dynamo"))
BINS = 17


class CausalConv2d(nn.Module):
    """A convolution over (time, frequency) that sees no later frame, norm and activation."""

    def __init__(self, a: int, b: int, transposed: bool = False, last: bool = False):
        super().__init__()
        kind = nn.ConvTranspose2d if transposed else nn.Conv2d
        self.conv = kind(a, b, (2, 3), (1, 2), (0, 1))
        self.transposed = transposed
        self.norm, self.act = nn.BatchNorm2d(b), nn.Identity() if last else nn.PReLU(b)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)[:, :, :-1] if self.transposed else self.conv(F.pad(x, (0, 0, 1, 0)))
        return self.act(self.norm(y))


class Crn(nn.Module):
    """CRN: encoder, LSTM between, decoder with skip connections, a mask on the spectrum."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList([CausalConv2d(1, 4), CausalConv2d(4, 6), CausalConv2d(6, 8)])
        self.lstm = nn.LSTM(24, 24, batch_first=True, num_layers=2)
        self.decoder = nn.ModuleList(
            [CausalConv2d(16, 6, True), CausalConv2d(12, 4, True), CausalConv2d(8, 1, True, True)]
        )

    def forward(self, spectrum: Tensor) -> Tensor:
        x, skips = spectrum.unsqueeze(1), []
        for layer in self.encoder:
            x = layer(x)
            skips.append(x)
        b, c, t, f = x.shape
        y = self.lstm(x.permute(0, 2, 1, 3).reshape(b, t, c * f))[0]
        x = y.reshape(b, t, c, f).permute(0, 2, 1, 3)
        for layer, skip in zip(self.decoder, reversed(skips), strict=True):
            x = layer(torch.cat([x, skip], 1))
        return torch.sigmoid(x.squeeze(1)) * spectrum


class ComplexConv(nn.Module):
    def __init__(self, a: int, b: int, transposed: bool = False):
        super().__init__()
        kind = nn.ConvTranspose2d if transposed else nn.Conv2d
        self.re, self.im = kind(a, b, (3, 2), (2, 1), (1, 0)), kind(a, b, (3, 2), (2, 1), (1, 0))
        self.norm, self.act, self.transposed = nn.BatchNorm2d(2 * b), nn.PReLU(), transposed

    def forward(self, x: Tensor) -> Tensor:
        if not self.transposed:
            x = F.pad(x, (1, 0))
        re, im = x.chunk(2, 1)
        y = torch.cat([self.re(re) - self.im(im), self.re(im) + self.im(re)], 1)
        return self.act(self.norm(y[..., 1:] if self.transposed else y))


class Dccrn(nn.Module):
    """DCCRN: complex convolutions, a complex LSTM, a mask in polar form."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList([ComplexConv(1, 2), ComplexConv(2, 4)])
        self.lstm_re, self.lstm_im = nn.LSTM(20, 20), nn.LSTM(20, 20)
        self.decoder = nn.ModuleList([ComplexConv(8, 2, True), ComplexConv(4, 1, True)])

    def forward(self, re: Tensor, im: Tensor):
        x, skips = torch.stack([re, im], 1), []
        for layer in self.encoder:
            x = layer(x)
            skips.append(x)
        b, c, f, t = x.shape
        a, e = x.permute(3, 0, 1, 2).reshape(t, b, 2, -1).unbind(2)
        real = self.lstm_re(a)[0] - self.lstm_im(e)[0]
        imag = self.lstm_re(e)[0] + self.lstm_im(a)[0]
        x = torch.cat([real, imag], -1).reshape(t, b, c, f).permute(1, 2, 3, 0)
        for layer, skip in zip(self.decoder, reversed(skips), strict=True):
            x = layer(torch.cat([x, skip], 1))
        m_re, m_im = x[:, 0], x[:, 1]
        size = torch.tanh(torch.sqrt(m_re**2 + m_im**2 + 1e-8))
        phase = torch.atan2(m_im, m_re + 1e-8) + torch.atan2(im, re + 1e-8)
        loud = torch.sqrt(re**2 + im**2 + 1e-8) * size
        return loud * torch.cos(phase), loud * torch.sin(phase)


class Dprnn(nn.Module):
    """DPRNN: chunks that overlap by half, an RNN within and one across them, overlap-add."""

    def __init__(self, chunk: int = 4):
        super().__init__()
        self.chunk = chunk
        self.encoder, self.decoder = nn.Conv1d(1, 8, 8, 4, bias=False), nn.ConvTranspose1d(8, 1, 8, 4, bias=False)
        self.inside, self.across = (
            nn.LSTM(8, 6, batch_first=True, bidirectional=True),
            nn.LSTM(8, 6, batch_first=True, bidirectional=True),
        )
        self.out_inside, self.out_across = nn.Linear(12, 8), nn.Linear(12, 8)
        self.norm_inside, self.norm_across, self.masks = nn.GroupNorm(1, 8), nn.GroupNorm(1, 8), nn.Conv1d(8, 16, 1)

    def forward(self, audio: Tensor) -> Tensor:
        w = F.relu(self.encoder(audio.unsqueeze(1)))
        b, n, t = w.shape
        k = self.chunk
        blocks = F.pad(w, (k // 2, k // 2)).unfold(2, k, k // 2)
        count = blocks.shape[2]
        x = blocks
        y = (
            self.out_inside(self.inside(x.permute(0, 2, 3, 1).reshape(b * count, k, n))[0])
            .reshape(b, count, k, n)
            .permute(0, 3, 1, 2)
        )
        x = x + self.norm_inside(y)
        y = (
            self.out_across(self.across(x.permute(0, 3, 2, 1).reshape(b * k, count, n))[0])
            .reshape(b, k, count, n)
            .permute(0, 3, 2, 1)
        )
        x = x + self.norm_across(y)
        first, second = x[..., : k // 2].reshape(b, n, -1), x[..., k // 2 :].reshape(b, n, -1)
        y = (F.pad(first, (0, k // 2)) + F.pad(second, (k // 2, 0)))[..., k // 2 : k // 2 + t]
        masks = torch.sigmoid(self.masks(y)).reshape(b * 2, n, t)
        separated = masks * w.repeat_interleave(2, 0)
        return self.decoder(separated).reshape(b, 2, -1)


class Dpcrn(nn.Module):
    """A dual-path GRU on a spectrogram: along frequency in both directions, along time forward, with a state."""

    def __init__(self):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(2, 6, (1, 3), padding=(0, 1)), nn.Conv2d(6, 2, 1)
        self.along_bins, self.along_time = (
            nn.GRU(6, 3, batch_first=True, bidirectional=True),
            nn.GRU(6, 6, batch_first=True),
        )
        self.norm_bins, self.norm_time = nn.LayerNorm([BINS, 6]), nn.LayerNorm([BINS, 6])

    def forward(self, x: Tensor, h: Tensor):
        y = self.enter(x).permute(0, 2, 3, 1)
        b, t, f, c = y.shape
        y = y + self.norm_bins(self.along_bins(y.reshape(b * t, f, c))[0].reshape(b, t, f, c))
        z, h = self.along_time(y.transpose(1, 2).reshape(b * f, t, c), h)
        y = y + self.norm_time(z.reshape(b, f, t, c).transpose(1, 2))
        return torch.tanh(self.leave(y.permute(0, 3, 1, 2))), h


class GroupedGru(nn.Module):
    """DeepFilterNet's grouped GRU and its ERB gains; states in and out."""

    def __init__(self, groups: int = 2):
        super().__init__()
        self.groups, self.to_bands = groups, nn.Linear(BINS, 8, bias=False)
        self.grus = nn.ModuleList([nn.GRU(4, 6, batch_first=True) for _ in range(groups)])
        self.out = nn.Linear(12, 8)
        self.register_buffer("to_bins", torch.rand(8, BINS))

    def forward(self, x: Tensor, h: Tensor):
        bands = torch.log10(self.to_bands(x).abs() + 1e-6)
        ys, hs = [], []
        for gru, part, state in zip(self.grus, bands.chunk(self.groups, -1), h.chunk(self.groups, 0), strict=True):
            y, s = gru(part, state)
            ys.append(y)
            hs.append(s)
        y = torch.stack(ys, -1).flatten(-2)
        return x * (torch.sigmoid(self.out(y)) @ self.to_bins), torch.cat(hs, 0)


class RnNoise(nn.Module):
    """RNNoise's net: three GRUs fed with each other's results, gains and voice activity."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(10, 8)
        self.vad_gru, self.noise_gru, self.gain_gru = (
            nn.GRU(8, 6, batch_first=True),
            nn.GRU(24, 8, batch_first=True),
            nn.GRU(24, 12, batch_first=True),
        )
        self.vad, self.gains = nn.Linear(6, 1), nn.Linear(12, 5)

    def forward(self, features: Tensor, h_vad: Tensor, h_noise: Tensor, h_gain: Tensor):
        x = torch.tanh(self.dense(features))
        v, h_vad = self.vad_gru(x, h_vad)
        n, h_noise = self.noise_gru(torch.cat([x, v, features], -1), h_noise)
        g, h_gain = self.gain_gru(torch.cat([v, n, features], -1), h_gain)
        return torch.sigmoid(self.gains(g)), torch.sigmoid(self.vad(v)), h_vad, h_noise, h_gain


class Dtln(nn.Module):
    """DTLN's second stage: a learned transform, instant layer norm, two LSTMs, states stacked in one tensor."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(16, 12, 1, bias=False), nn.Conv1d(12, 16, 1, bias=False)
        self.lstm1, self.lstm2, self.mask = (
            nn.LSTM(12, 8, batch_first=True),
            nn.LSTM(8, 8, batch_first=True),
            nn.Linear(8, 12),
        )
        self.gamma, self.beta = nn.Parameter(torch.ones(12)), nn.Parameter(torch.zeros(12))

    def forward(self, frames: Tensor, states: Tensor):
        encoded = self.encoder(frames.transpose(1, 2)).transpose(1, 2)
        mean = encoded.mean(-1, keepdim=True)
        spread = (encoded - mean).square().mean(-1, keepdim=True)
        x = (encoded - mean) / torch.sqrt(spread + 1e-7) * self.gamma + self.beta
        x, (h1, c1) = self.lstm1(x, (states[0:1, ..., 0].contiguous(), states[0:1, ..., 1].contiguous()))
        x, (h2, c2) = self.lstm2(x, (states[1:2, ..., 0].contiguous(), states[1:2, ..., 1].contiguous()))
        y = self.decoder((torch.sigmoid(self.mask(x)) * encoded).transpose(1, 2)).transpose(1, 2)
        return y, torch.stack([torch.cat([h1, h2]), torch.cat([c1, c2])], -1)


class FullSubNet(nn.Module):
    """FullSubNet: a full-band LSTM, then one for each bin with its neighbours."""

    def __init__(self):
        super().__init__()
        self.full, self.full_out = nn.LSTM(BINS, 10, batch_first=True), nn.Linear(10, BINS)
        self.sub, self.sub_out = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, magnitude: Tensor) -> Tensor:
        b, t, f = magnitude.shape
        x = magnitude / (magnitude.mean((1, 2), keepdim=True) + 1e-5)
        full = F.relu(self.full_out(self.full(x)[0]))
        neighbours = F.pad(x, (1, 1), mode="reflect").unfold(2, 3, 1)
        units = torch.cat([neighbours, full.unsqueeze(-1)], -1).transpose(1, 2).reshape(b * f, t, 4)
        return self.sub_out(self.sub(units)[0]).reshape(b, f, t, 2).permute(0, 3, 2, 1)


class VoiceActivity(nn.Module):
    """Silero's kind: a fixed transform as a convolution, some convolutions, an LSTM cell, one number a chunk."""

    def __init__(self):
        super().__init__()
        self.register_buffer("basis", torch.randn(18, 1, 16))
        self.convs = nn.Sequential(nn.Conv1d(9, 12, 3, padding=1), nn.ReLU(), nn.Conv1d(12, 8, 3, 2, 1), nn.ReLU())
        self.cell, self.out = nn.LSTMCell(8, 8), nn.Conv1d(8, 1, 1)

    def forward(self, audio: Tensor, state: Tensor):
        y = F.conv1d(F.pad(audio.unsqueeze(1), (0, 8), "reflect"), self.basis, stride=8)
        x = self.convs(torch.sqrt(y[:, :9] ** 2 + y[:, 9:] ** 2))
        h, c = self.cell(x.mean(-1), (state[0], state[1]))
        return torch.sigmoid(self.out(F.relu(h).unsqueeze(-1))).squeeze(-1), torch.stack([h, c])


class KeywordSpotter(nn.Module):
    """CRNN for keywords: 2-D convolutions, GRU, dense."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 6, (5, 5), (2, 2)), nn.BatchNorm2d(6), nn.ReLU6(), nn.AvgPool2d((1, 2)))
        self.gru, self.out = nn.GRU(18, 12, num_layers=2, batch_first=True), nn.Linear(12, 4)

    def forward(self, mfcc: Tensor) -> Tensor:
        x = self.conv(mfcc.unsqueeze(1)).permute(0, 2, 1, 3).flatten(2)
        return F.softmax(self.out(self.gru(x)[0][:, -1]), -1)


class DeepSpeech(nn.Module):
    """Deep Speech 2: clipped convolutions, bidirectional GRUs whose halves are added, look-ahead convolution."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 4, (5, 3), (2, 1), (2, 1)), nn.BatchNorm2d(4), nn.Hardtanh(0, 20))
        self.grus = nn.ModuleList([nn.GRU(36, 12, bidirectional=True), nn.GRU(12, 12, bidirectional=True)])
        self.norm, self.look_ahead, self.out = (
            nn.BatchNorm1d(12),
            nn.Conv1d(12, 12, 3, groups=12, bias=False),
            nn.Linear(12, 10),
        )

    def forward(self, spectrum: Tensor) -> Tensor:
        x = self.conv(spectrum.transpose(1, 2).unsqueeze(1))
        x = x.flatten(1, 2).permute(2, 0, 1)
        for index, gru in enumerate(self.grus):
            if index:
                t, b, _ = x.shape
                x = self.norm(x.reshape(t * b, -1)).reshape(t, b, -1)
            x = gru(x)[0]
            x = x.view(x.size(0), x.size(1), 2, -1).sum(2)
        x = self.look_ahead(F.pad(x.permute(1, 2, 0), (0, 2)))
        return F.log_softmax(self.out(F.hardtanh(x, 0, 20).transpose(1, 2)), -1)


class Speaker(nn.Module):
    """GE2E: three LSTMs, the last state projected and normalized; statistics of the frames beside."""

    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(10, 12, num_layers=3, batch_first=True), nn.Linear(36, 8)

    def forward(self, mel: Tensor) -> Tensor:
        y, (h, _) = self.lstm(mel)
        x = F.relu(self.out(torch.cat([h[-1], y.mean(1), y.std(1)], -1)))
        return x / (x.norm(dim=1, keepdim=True) + 1e-5)


class Cbhg(nn.Module):
    """Tacotron's CBHG: a bank of convolutions, pooling, highways, a bidirectional GRU."""

    def __init__(self):
        super().__init__()
        self.bank = nn.ModuleList([nn.Conv1d(8, 4, k, padding=k // 2) for k in (1, 2, 3)])
        self.pool, self.project = nn.MaxPool1d(2, 1, 1), nn.Conv1d(12, 8, 3, padding=1)
        self.highways = nn.ModuleList([nn.Linear(8, 16) for _ in range(2)])
        self.gru = nn.GRU(8, 6, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        t = x.size(1)
        y = torch.cat([F.relu(conv(x.transpose(1, 2))[..., :t]) for conv in self.bank], 1)
        y = self.project(self.pool(y)[..., :t]).transpose(1, 2) + x
        for highway in self.highways:
            h, gate = highway(y).chunk(2, -1)
            gate = torch.sigmoid(gate)
            y = gate * F.relu(h) + (1 - gate) * y
        return self.gru(y)[0]


class SpectralGru(nn.Module):
    """From samples to samples: STFT, a GRU on magnitudes, inverse by a transposed convolution."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(32))
        self.register_buffer("inverse", torch.randn(2 * BINS, 1, 32) / 16)
        self.gru, self.mask = nn.GRU(BINS, 12, batch_first=True), nn.Linear(12, BINS)

    def forward(self, audio: Tensor) -> Tensor:
        spectrum = torch.stft(audio, 32, 16, window=self.window, return_complex=False, center=False)
        re, im = spectrum.unbind(-1)
        loud = torch.sqrt(re * re + im * im + 1e-8)
        mask = torch.sigmoid(self.mask(self.gru(torch.log1p(loud).transpose(1, 2))[0])).transpose(1, 2)
        return F.conv_transpose1d(torch.cat([re * mask, im * mask], 1), self.inverse, stride=16).squeeze(1)


SPECTRUM = positive("batch", "steps", BINS)
QUANTIZED = ("int8", "qdq", "qoperator", "float16")
family.add("crn_denoiser", Crn, {"spectrum": SPECTRUM}, versions=QUANTIZED)
family.add("dccrn", Dccrn, {"re": floats("batch", 17, "steps"), "im": floats("batch", 17, "steps")}, "re_out im_out")
family.add("dprnn", Dprnn, {"audio": floats("batch", 64)}, versions=("float16",))
family.add("dprnn_open_length", Dprnn, {"audio": floats("batch", "samples")})
family.add("dpcrn", Dpcrn, {"x": floats(1, 2, "steps", BINS), "h_in": floats(1, BINS, 6)}, "y h_out", {"h_in": "h_out"})
family.add(
    "grouped_gru_denoiser",
    GroupedGru,
    {"x": positive("batch", "steps", BINS), "h_in": floats(2, "batch", 6)},
    "y h_out",
    {"h_in": "h_out"},
    versions=QUANTIZED,
)
STATES = {"vad_in": floats(1, "batch", 6), "noise_in": floats(1, "batch", 8), "gain_in": floats(1, "batch", 12)}
family.add(
    "rnnoise",
    RnNoise,
    {"features": floats("batch", "steps", 10), **STATES},
    "gains vad vad_out noise_out gain_out",
    {name: name.replace("_in", "_out") for name in STATES},
    versions=("int8", "float16"),
)
family.add(
    "dtln",
    Dtln,
    {"frames": floats("batch", "steps", 16), "states_in": floats(2, "batch", 8, 2)},
    "y states_out",
    {"states_in": "states_out"},
)
family.add("full_sub_net", FullSubNet, {"magnitude": SPECTRUM})
family.add(
    "voice_activity",
    VoiceActivity,
    {"audio": floats("batch", 64), "state": floats(2, "batch", 8)},
    "probability state_out",
    {"state": "state_out"},
    versions=QUANTIZED,
)
family.add("keyword_spotter", KeywordSpotter, {"mfcc": floats("batch", 20, 16)}, versions=QUANTIZED)
family.add("deep_speech", DeepSpeech, {"spectrum": floats("batch", "steps", BINS)}, versions=("int8",))
family.add("speaker_embedding", Speaker, {"mel": floats("batch", "steps", 10)})
family.add("cbhg", Cbhg, {"x": floats("batch", "steps", 8)}, versions=QUANTIZED)
family.add("spectral_gru", SpectralGru, {"audio": floats("batch", 160)})
