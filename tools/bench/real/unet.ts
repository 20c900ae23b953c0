/** The U-Net of a diffusion model (DDPM, Ho et al. 2020) at 32 x 32: width 64, times 1, 2, 2, 2; two residual blocks a level, attention at 16 x 16. */
import { concat, cos, silu, sin, type Tensor, tensor } from "@opt/core";
import {
  Conv2d,
  GroupNorm,
  interpolate,
  Linear,
  Module,
  ModuleList,
  mseLoss,
  scaledDotProductAttention,
} from "@opt/nn";
import { integers, values } from "../nn/values";
import type { RealTask } from "./task";

const [BATCH, SIZE, WIDTH] = [16, 32, 64];
const TIMES = [1, 2, 2, 2];
const TIME_WIDTH = 4 * WIDTH;
const ATTENTION_AT = 16;

class Residual extends Module {
  readonly norm1: GroupNorm;
  readonly conv1: Conv2d;
  readonly time: Linear;
  readonly norm2: GroupNorm;
  readonly conv2: Conv2d;
  readonly skip: Conv2d | null;

  constructor(from: number, to: number) {
    super();
    this.norm1 = new GroupNorm(32, from);
    this.conv1 = new Conv2d(from, to, 3, { padding: 1 });
    this.time = new Linear(TIME_WIDTH, to);
    this.norm2 = new GroupNorm(32, to);
    this.conv2 = new Conv2d(to, to, 3, { padding: 1 });
    this.skip = from === to ? null : new Conv2d(from, to, 1);
  }

  forward(x: Tensor, time: Tensor): Tensor {
    const hidden = this.conv1.forward(silu(this.norm1.forward(x)));
    const shifted = hidden.add(this.time.forward(time).reshape([BATCH, -1, 1, 1]));
    return (this.skip?.forward(x) ?? x).add(this.conv2.forward(silu(this.norm2.forward(shifted))));
  }
}

class Attention extends Module {
  readonly norm: GroupNorm;
  readonly qkv: Conv2d;
  readonly out: Conv2d;

  constructor(channels: number) {
    super();
    this.norm = new GroupNorm(32, channels);
    this.qkv = new Conv2d(channels, 3 * channels, 1);
    this.out = new Conv2d(channels, channels, 1);
  }

  forward(x: Tensor): Tensor {
    const [batch, channels, height, width] = x.shape as [number, number, number, number];
    const rows = this.qkv.forward(this.norm.forward(x)).reshape([batch, 3, channels, height * width]);
    const [q, k, v] = [0, 1, 2].map((i) => rows.select(1, i).transpose(1, 2)) as [Tensor, Tensor, Tensor];
    const seen = scaledDotProductAttention(q, k, v)
      .transpose(1, 2)
      .reshape([...x.shape]);
    return x.add(this.out.forward(seen));
  }
}

class Level extends Module {
  readonly residuals: ModuleList<Residual>;
  readonly attentions: ModuleList<Attention>;

  constructor(inputs: readonly number[], to: number, size: number) {
    super();
    this.residuals = new ModuleList(inputs.map((from) => new Residual(from, to)));
    this.attentions = new ModuleList(size === ATTENTION_AT ? inputs.map(() => new Attention(to)) : []);
  }

  /** By block i. */
  forward(i: number, x: Tensor, time: Tensor): Tensor {
    const hidden = this.residuals.at(i)!.forward(x, time);
    return this.attentions.at(i)?.forward(hidden) ?? hidden;
  }
}

class UNet extends Module {
  readonly time1 = new Linear(WIDTH, TIME_WIDTH);
  readonly time2 = new Linear(TIME_WIDTH, TIME_WIDTH);
  readonly first = new Conv2d(3, WIDTH, 3, { padding: 1 });
  readonly down: ModuleList<Level>;
  readonly shrink: ModuleList<Conv2d>;
  readonly middle: Level;
  readonly up: ModuleList<Level>;
  readonly grow: ModuleList<Conv2d>;
  readonly norm = new GroupNorm(32, WIDTH);
  readonly last = new Conv2d(WIDTH, 3, 3, { padding: 1 });
  readonly #frequencies = tensor(Float32Array.from({ length: WIDTH / 2 }, (_, i) => 10_000 ** (-i / (WIDTH / 2))));

  constructor() {
    super();
    const widths = TIMES.map((times) => WIDTH * times);
    const kept = [WIDTH];
    let width = WIDTH;
    const down: Level[] = [];
    for (const [i, to] of widths.entries()) {
      down.push(new Level([width, to], to, SIZE >> i));
      width = to;
      kept.push(to, to);
      if (i < 3) kept.push(to);
    }
    this.down = new ModuleList(down);
    this.shrink = new ModuleList(widths.slice(0, 3).map((to) => new Conv2d(to, to, 3, { stride: 2, padding: 1 })));
    this.middle = new Level([width, width], width, SIZE >> 3);
    const up: Level[] = [];
    for (const [i, to] of [...widths.entries()].reverse()) {
      const inputs = [width, to, to].map((from) => from + kept.pop()!);
      up.push(new Level(inputs, to, SIZE >> i));
      width = to;
    }
    this.up = new ModuleList(up);
    this.grow = new ModuleList(
      widths
        .slice(1)
        .reverse()
        .map((to) => new Conv2d(to, to, 3, { padding: 1 })),
    );
  }

  forward(images: Tensor, steps: Tensor): Tensor {
    const angles = steps.reshape([BATCH, 1]).mul(this.#frequencies);
    const time = silu(this.time2.forward(silu(this.time1.forward(concat([sin(angles), cos(angles)], 1)))));
    const kept = [this.first.forward(images)];
    for (const [i, level] of [...this.down].entries()) {
      for (const block of [0, 1]) kept.push(level.forward(block, kept.at(-1)!, time));
      const shrink = this.shrink.at(i);
      if (shrink) kept.push(shrink.forward(kept.at(-1)!));
    }
    let x = kept.at(-1)!;
    for (const block of [0, 1]) x = this.middle.forward(block, x, time);
    for (const [i, level] of [...this.up].entries()) {
      for (const block of [0, 1, 2]) x = level.forward(block, concat([x, kept.pop()!], 1), time);
      const grow = this.grow.at(i);
      if (grow) x = grow.forward(interpolate(x, { scaleFactor: 2 }));
    }
    return this.last.forward(silu(this.norm.forward(x)));
  }
}

export function unet(): RealTask {
  const model = new UNet();
  const pictures = (factor: number) =>
    tensor(values(BATCH * 3 * SIZE * SIZE, factor), { shape: [BATCH, 3, SIZE, SIZE] });
  return {
    model,
    batch: (index) => [
      pictures(104_729 + 2 * index),
      tensor(Float32Array.from(integers(BATCH, 31 + 2 * index, 1000)), { shape: [BATCH] }),
      pictures(1299 + 2 * index),
    ],
    loss: (images, steps, noise) => mseLoss(model.forward(images!, steps!), noise!),
    optimizer: "AdamW",
    lr: 1e-3,
  };
}
