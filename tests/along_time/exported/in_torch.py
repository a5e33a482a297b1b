"""The models beside this file, as both of torch's exporters write them.

    build/exports/torch/bin/python -m tests.along_time.exported.in_torch

`make exports-write` makes that environment. Tests read the files; none of them needs torch.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional as F

HERE = Path(__file__).parent


class CausalConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int = 1, groups: int = 1):
        super().__init__()
        self.before = (kernel - 1) * dilation
        self.conv = nn.Conv1d(inputs, outputs, kernel, dilation=dilation, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (self.before, 0)))


class WaveNet(nn.Module):
    """Ten dilated layers with gates, residual and skip connections: [batch, 1, time]."""

    def __init__(self, width: int = 4, layers: int = 10):
        super().__init__()
        self.first = CausalConv(1, width, 2)
        self.dilated = nn.ModuleList([CausalConv(width, 2 * width, 2, 2**layer) for layer in range(layers)])
        self.residual = nn.ModuleList([nn.Conv1d(width, width, 1) for _ in range(layers)])
        self.skip = nn.ModuleList([nn.Conv1d(width, width, 1) for _ in range(layers)])
        self.out_1, self.out_2 = nn.Conv1d(width, width, 1), nn.Conv1d(width, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        total = torch.zeros_like(x)
        for dilated, residual, skip in zip(self.dilated, self.residual, self.skip, strict=True):
            left, right = dilated(x).chunk(2, 1)
            gated = torch.tanh(left) * torch.sigmoid(right)
            total, x = total + skip(gated), x + residual(gated)
        return self.out_2(F.relu(self.out_1(F.relu(total))))


class Chomp(nn.Module):
    def __init__(self, frames: int):
        super().__init__()
        self.frames = frames

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :, : -self.frames].contiguous()


class Tcn(nn.Module):
    """Eight residual blocks of dilated convolutions that are padded on both sides and cut: [batch, width, time]."""

    def __init__(self, width: int = 6, layers: int = 8):
        super().__init__()
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(nn.Conv1d(width, width, 3, padding=2 * 2**n, dilation=2**n), Chomp(2 * 2**n), nn.ReLU())
                for n in range(layers)
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = F.relu(x + block(x))
        return x


class Crn(nn.Module):
    """A causal denoiser: Conv2d encoder, GRU, ConvTranspose2d decoder with skips. [batch, time, 17 bins] -> a mask."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList([nn.Conv2d(1, 4, (2, 3), stride=(1, 2)), nn.Conv2d(4, 6, (2, 3), stride=(1, 2))])
        self.norms = nn.ModuleList([nn.BatchNorm2d(4), nn.BatchNorm2d(6)])
        self.gru = nn.GRU(18, 18, batch_first=True)
        self.decoder_1 = nn.ConvTranspose2d(12, 4, (2, 3), stride=(1, 2), output_padding=(0, 1))
        self.norm, self.decoder_2 = nn.BatchNorm2d(4), nn.ConvTranspose2d(8, 1, (2, 3), stride=(1, 2))

    def forward(self, x: Tensor) -> Tensor:
        x, skips = x.unsqueeze(1), []
        for conv, norm in zip(self.encoder, self.norms, strict=True):
            x = F.elu(norm(conv(F.pad(x, (0, 0, 1, 0)))))
            skips.append(x)
        batch, channels, frames, bins = x.shape
        y, _ = self.gru(x.permute(0, 2, 1, 3).reshape(batch, frames, channels * bins))
        y = y.reshape(batch, frames, channels, bins).permute(0, 2, 1, 3)
        y = F.elu(self.norm(self.decoder_1(torch.cat([y, skips[1]], 1))[:, :, :-1, :]))
        y = self.decoder_2(torch.cat([y, skips[0]], 1))[:, :, :-1, :]
        return torch.sigmoid(y.squeeze(1))


class ConvTasNet(nn.Module):
    """A causal separator of two speakers: [batch, samples] -> [batch, 2, samples]."""

    def __init__(self, filters: int = 8, size: int = 8, width: int = 4, hidden: int = 6):
        super().__init__()
        self.encoder = nn.Conv1d(1, filters, size, stride=size // 2, bias=False)
        self.decoder = nn.ConvTranspose1d(filters, 1, size, stride=size // 2, bias=False)
        self.norm, self.narrow = nn.LayerNorm(filters), nn.Conv1d(filters, width, 1)
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(
                    nn.Conv1d(width, hidden, 1),
                    nn.PReLU(),
                    CausalConv(hidden, hidden, 3, 2**n, groups=hidden),
                    nn.PReLU(),
                    nn.Conv1d(hidden, width, 1),
                )
                for n in range(3)
            ]
        )
        self.masks, self.filters = nn.Conv1d(width, 2 * filters, 1), filters

    def forward(self, samples: Tensor) -> Tensor:
        frames = F.relu(self.encoder(samples.unsqueeze(1)))
        y = self.narrow(self.norm(frames.transpose(1, 2)).transpose(1, 2))
        for block in self.blocks:
            y = y + block(y)
        masks = F.relu(self.masks(y)).view(samples.shape[0], 2, self.filters, -1)
        both = frames.unsqueeze(1) * masks
        return self.decoder(both.reshape(samples.shape[0] * 2, self.filters, -1)).view(samples.shape[0], 2, -1)


class KeywordSpotter(nn.Module):
    """Centred convolutions with strides, pools and a GRU: [batch, time, 10 bands] -> [batch, time / 8, 4]."""

    def __init__(self):
        super().__init__()
        self.conv_1, self.norm = nn.Conv1d(10, 8, 5, stride=2, padding=2), nn.BatchNorm1d(8)
        self.conv_2 = nn.Conv1d(8, 8, 3, stride=2, padding=1, groups=4)
        self.most, self.mean = nn.MaxPool1d(3, 2, 1), nn.AvgPool1d(3, 1, 1)
        self.gru, self.out = nn.GRU(8, 6, batch_first=True), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm(self.conv_1(x.transpose(1, 2))))
        y = self.mean(self.most(F.relu(self.conv_2(y))))
        return F.log_softmax(self.out(self.gru(y.transpose(1, 2))[0]), -1)


class MelGru(nn.Module):
    """A centred STFT with reflected ends, bands, a causal convolution and a GRU: [batch, samples]."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(32))
        self.register_buffer("bands", torch.rand(17, 6))
        self.conv, self.gru, self.out = CausalConv(6, 5, 3), nn.GRU(5, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, samples: Tensor) -> Tensor:
        spectrum = torch.stft(samples, 32, 8, window=self.window, center=True, pad_mode="reflect", return_complex=False)
        power = (spectrum**2).sum(-1).transpose(1, 2) @ self.bands
        y = F.relu(self.conv(torch.log(power + 1e-5).transpose(1, 2))).transpose(1, 2)
        return torch.sigmoid(self.out(self.gru(y)[0]))


class LstmWithStates(nn.Module):
    """Its last states are outputs: [batch, time, 6]."""

    def __init__(self):
        super().__init__()
        self.conv, self.lstm = CausalConv(6, 6, 3), nn.LSTM(6, 5, 2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.lstm(self.conv(x.transpose(1, 2)).transpose(1, 2))
        return y, h, c


class DownAndUp(nn.Module):
    """A small U: [batch, 4, time]."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv1d(4, 8, 4, stride=2, padding=1), nn.ConvTranspose1d(8, 4, 4, stride=2, padding=1)
        self.join = nn.Conv1d(8, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        low = F.leaky_relu(self.down(x))
        y = self.join(torch.cat([x, self.up(low)], 1))
        return y + F.interpolate(low[:, :4], scale_factor=2, mode="nearest")


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "wavenet": (WaveNet, (2, 1, 64), 2),
    "tcn": (Tcn, (2, 6, 64), 2),
    "crn": (Crn, (2, 20, 17), 1),
    "tasnet": (ConvTasNet, (2, 160), 1),
    "kws": (KeywordSpotter, (2, 32, 10), 1),
    "mel_gru": (MelGru, (2, 320), 1),
    "lstm_states": (LstmWithStates, (2, 12, 6), 1),
    "down_and_up": (DownAndUp, (2, 4, 16), 2),
}
"""How each is made, its input and the axis of time."""


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    for name, (make, shape, axis) in MODELS.items():
        torch.manual_seed(0)
        module, x = make().eval(), torch.randn(shape)
        names = {"input_names": ["x"]}
        with torch.no_grad():
            axes = {"x": {0: "batch", axis: "time"}}
            torch.onnx.export(
                module, (x,), HERE / f"{name}.script.onnx", dynamo=False, opset_version=17, dynamic_axes=axes, **names
            )
        for dims in ({0: torch.export.Dim("batch"), axis: torch.export.Dim.AUTO}, {axis: torch.export.Dim.AUTO}):
            try:
                torch.onnx.export(
                    module,
                    (x if 0 in dims else x[:1],),
                    HERE / f"{name}.dynamo.onnx",
                    dynamo=True,
                    opset_version=18,
                    dynamic_shapes=(dims,),
                    external_data=False,
                    verbose=False,
                    **names,
                )
                break
            except torch.onnx.errors.OnnxExporterError as error:
                print(name, dims, str(error)[:100])
        for path in HERE.glob(f"{name}.*.onnx"):
            without_origins(path)


def without_origins(path: Path) -> None:
    """The exporters write down which lines of which files a node comes from."""
    model = onnx.load(path)
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.initializer):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    for part in (*model.graph.input, *model.graph.output):
        part.ClearField("metadata_props")
    onnx.save(model, path)


if __name__ == "__main__":
    main()
