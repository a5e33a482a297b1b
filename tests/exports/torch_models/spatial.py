"""Recurrence over images and fields: ConvLSTM and its kin, and loops over an image's rows and columns."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..table import Family, floats

family = Family("spatial", ("script", "dynamo"))
CHANNELS, HIDDEN = 3, 6


class ConvLstmCell(nn.Module):
    def __init__(self, channels: int = CHANNELS):
        super().__init__()
        self.conv = nn.Conv2d(channels + HIDDEN, 4 * HIDDEN, 3, padding=1)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, o, g = torch.split(self.conv(torch.cat([x, h], dim=1)), 6, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class ConvLstm(nn.Module):
    """Two layers over frames of a video (batch, time, channels, height, width), the next frame out."""

    def __init__(self):
        super().__init__()
        self.first, self.second = ConvLstmCell(), ConvLstmCell(HIDDEN)
        self.norm, self.out = nn.BatchNorm2d(HIDDEN), nn.Conv2d(HIDDEN, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(0), 6, x.size(3), x.size(4))
        c, h2, c2 = h, h, h
        ys: list[Tensor] = []
        for t in range(x.size(1)):
            h, c = self.first(x[:, t], h, c)
            h2, c2 = self.second(self.norm(h), h2, c2)
            ys.append(torch.sigmoid(self.out(h2)))
        return torch.stack(ys, 1)


class ConvLstmStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = ConvLstmCell(), nn.Conv2d(HIDDEN, 1, 1)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h, c = self.cell(x, h, c)
        return self.out(h), h, c


class ConvGru(nn.Module):
    """The update block of an optical-flow network: separable convolutions along rows, then columns, some iterations."""

    def __init__(self):
        super().__init__()
        both = CHANNELS + HIDDEN
        self.gates = nn.ModuleList(
            [nn.Conv2d(both, 2 * HIDDEN, k, padding=p) for k, p in (((1, 5), (0, 2)), ((5, 1), (2, 0)))]
        )
        self.candidates = nn.ModuleList(
            [nn.Conv2d(both, HIDDEN, k, padding=p) for k, p in (((1, 5), (0, 2)), ((5, 1), (2, 0)))]
        )
        self.flow = nn.Sequential(nn.Conv2d(HIDDEN, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 3, padding=1))

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        flow = torch.zeros(x.size(0), 2, x.size(2), x.size(3))
        for _ in range(4):
            for gate, candidate in zip(self.gates, self.candidates):  # noqa: B905 - TorchScript
                z, r = torch.sigmoid(gate(torch.cat([h, x], 1))).chunk(2, 1)
                h = (1 - z) * h + z * torch.tanh(candidate(torch.cat([r * h, x], 1)))
            flow = flow + self.flow(h)
        return F.interpolate(flow, scale_factor=2.0, mode="bilinear", align_corners=True), h


class SpatioTemporal(nn.Module):
    """PredRNN: a second memory that goes through all layers of a step."""

    def __init__(self):
        super().__init__()
        self.x, self.h, self.m = (
            nn.Conv2d(CHANNELS, 7 * HIDDEN, 3, padding=1),
            nn.Conv2d(HIDDEN, 4 * HIDDEN, 3, padding=1),
            nn.Conv2d(HIDDEN, 3 * HIDDEN, 3, padding=1),
        )
        self.o, self.last = nn.Conv2d(2 * HIDDEN, HIDDEN, 3, padding=1), nn.Conv2d(2 * HIDDEN, HIDDEN, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 6, x.size(3), x.size(4))
        c, m = h, h
        ys: list[Tensor] = []
        for t in range(x.size(0)):
            i, f, g, i2, f2, g2, o = self.x(x[t]).chunk(7, 1)
            ih, fh, gh, oh = self.h(h).chunk(4, 1)
            im, fm, gm = self.m(m).chunk(3, 1)
            c = torch.sigmoid(f + fh + 1.0) * c + torch.sigmoid(i + ih) * torch.tanh(g + gh)
            m = torch.sigmoid(f2 + fm + 1.0) * m + torch.sigmoid(i2 + im) * torch.tanh(g2 + gm)
            both = torch.cat([c, m], 1)
            h = torch.sigmoid(o + oh + self.o(both)) * torch.tanh(self.last(both))
            ys.append(h)
        return torch.stack(ys)


class CnnLstm(nn.Module):
    """A small CNN on each frame of a video, an LSTM over the frames."""

    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(CHANNELS, 6, 3, stride=2, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 8, 3),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.lstm, self.out = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        b, t = x.size(0), x.size(1)
        y = self.cnn(x.flatten(0, 1)).flatten(1).view(b, t, -1)
        return self.out(self.lstm(y)[0][:, -1])


class RowsAndColumns(nn.Module):
    """ReNet: bidirectional GRUs along the rows of an image, then along its columns."""

    def __init__(self):
        super().__init__()
        self.rows = nn.GRU(CHANNELS, 5, batch_first=True, bidirectional=True)
        self.columns = nn.GRU(10, 5, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        b, _, h, w = x.shape
        y = self.rows(x.permute(0, 2, 3, 1).reshape(b * h, w, -1))[0]
        y = y.reshape(b, h, w, -1).transpose(1, 2).reshape(b * w, h, -1)
        return self.columns(y)[0].reshape(b, w, h, -1).permute(0, 3, 2, 1)


class Crnn(nn.Module):
    """CRNN for text in images: convolutions, height pooled away, two bidirectional LSTMs, CTC scores."""

    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
            nn.Conv2d(8, 10, 2), nn.LeakyReLU(0.1),
        )  # fmt: skip
        self.first = nn.LSTM(10, 8, bidirectional=True)
        self.between = nn.Linear(16, 8)
        self.second = nn.LSTM(8, 8, bidirectional=True)
        self.out = nn.Linear(16, 12)

    def forward(self, image: Tensor) -> Tensor:
        y = self.cnn(image).squeeze(2).permute(2, 0, 1)
        y = self.between(self.first(y)[0])
        return torch.log_softmax(self.out(self.second(y)[0]), 2)


class CrnnGreedy(nn.Module):
    """The same, with the classes and the places that CTC keeps."""

    def __init__(self):
        super().__init__()
        self.crnn = Crnn()

    def forward(self, image: Tensor):
        best = self.crnn(image).argmax(-1).transpose(0, 1)
        before = F.pad(best, (1, 0), value=-1)[:, :-1]
        keep = (best != before) & (best != 0)
        return best, keep, keep.sum(1)


VIDEO = floats("batch", "steps", CHANNELS, 8, 8)
FIELD = floats("batch", HIDDEN, 8, 8)
QUANTIZED = ("int8", "qdq", "qoperator", "float16")
family.add("conv_lstm", ConvLstm, {"x": VIDEO})
family.add(
    "conv_lstm_step",
    ConvLstmStep,
    {"x": floats("batch", CHANNELS, 8, 8), "h_in": FIELD, "c_in": FIELD},
    "y h_out c_out",
    {"h_in": "h_out", "c_in": "c_out"},
    ("trace", "dynamo"),
    QUANTIZED,
)
family.add(
    "conv_gru_flow",
    ConvGru,
    {"x": floats("batch", CHANNELS, 8, 8), "h_in": FIELD},
    "flow h_out",
    {"h_in": "h_out"},
    ("script", "trace", "dynamo"),
    ("float16",),
)
family.add("pred_rnn", SpatioTemporal, {"x": floats("steps", "batch", CHANNELS, 6, 6)})
family.add(
    "cnn_lstm",
    CnnLstm,
    {"x": floats("batch", "steps", CHANNELS, 16, 16)},
    exporters=("trace", "dynamo"),
    versions=QUANTIZED,
)
family.add("rows_and_columns", RowsAndColumns, {"x": floats("batch", CHANNELS, 5, 7)}, exporters=("trace", "dynamo"))
family.add("crnn_ocr", Crnn, {"image": floats("batch", 1, 8, 40)}, exporters=("trace", "dynamo"), versions=QUANTIZED)
family.add("crnn_ocr_open_width", Crnn, {"image": floats("batch", 1, 8, "samples")}, exporters=("trace", "dynamo"))
family.add(
    "crnn_ocr_greedy",
    CrnnGreedy,
    {"image": floats("batch", 1, 8, 40)},
    "best keep count",
    exporters=("trace", "dynamo"),
)
