// How the parameters of each layer begin: the distributions of PyTorch's reset_parameters.
import { Generator, type Tensor } from "@opt/core";
import { expect, it } from "vitest";
import * as nn from "../index";

/** Uniform up to a bound on both sides, normal with mean 0, or all the same. */
type Start = { readonly uniform: number } | { readonly std: number } | { readonly all: number };

const [one, zero]: Start[] = [{ all: 1 }, { all: 0 }];
const uniform = (fan: number): Start => ({ uniform: 1 / Math.sqrt(fan) });
const xavier = (fans: number): Start => ({ uniform: Math.sqrt(6 / fans) });
const affine = { weight: one!, bias: zero! };
const seeded = { generator: new Generator(5) };
const inner = { dimFeedforward: 48, ...seeded };

/** By pattern of names: each parameter and buffer has the first that fits. */
const LAYERS: readonly [layer: nn.Module, starts: Readonly<Record<string, Start>>][] = [
  [new nn.Linear(64, 16, seeded), { ".": uniform(64) }],
  [new nn.Conv1d(6, 16, 4, seeded), { ".": uniform(24) }],
  [new nn.Conv2d(8, 16, 3, { groups: 2, ...seeded }), { ".": uniform(36) }],
  [new nn.Conv3d(2, 16, 2, seeded), { ".": uniform(16) }],
  // PyTorch takes the fan of the second axis here, too: the output's channels.
  [new nn.ConvTranspose1d(4, 20, 5, seeded), { ".": uniform(100) }],
  [new nn.ConvTranspose2d(4, 16, 3, { groups: 2, ...seeded }), { ".": uniform(72) }],
  [new nn.Embedding(50, 20, seeded), { ".": { std: 1 } }],
  [new nn.EmbeddingBag(50, 20, seeded), { ".": { std: 1 } }],
  [new nn.RNN(5, 16, { numLayers: 2, ...seeded }), { ".": uniform(16) }],
  [new nn.LSTM(5, 9, { bidirectional: true, ...seeded }), { ".": uniform(9) }],
  [new nn.GRU(5, 25, seeded), { ".": uniform(25) }],
  [new nn.RNNCell(5, 16, seeded), { ".": uniform(16) }],
  [new nn.LSTMCell(5, 9, seeded), { ".": uniform(9) }],
  [new nn.GRUCell(5, 25, seeded), { ".": uniform(25) }],
  [new nn.LayerNorm(6), affine],
  [new nn.RMSNorm(6), affine],
  [new nn.GroupNorm(2, 6), affine],
  [new nn.BatchNorm1d(6), { ...affine, running_mean: zero!, running_var: one!, num_batches: zero! }],
  [new nn.BatchNorm2d(6), { ...affine, running_mean: zero!, running_var: one!, num_batches: zero! }],
  [
    new nn.InstanceNorm1d(6, { affine: true, trackRunningStats: true }),
    { ...affine, running_mean: zero!, running_var: one!, num_batches: zero! },
  ],
  [new nn.PReLU(3), { ".": { all: 0.25 } }],
  [
    new nn.MultiheadAttention(16, 4, seeded),
    { in_proj_weight: xavier(16 + 48), "out_proj.weight": uniform(16), bias: zero! },
  ],
  [
    new nn.TransformerEncoderLayer(16, 4, inner),
    {
      in_proj_weight: xavier(64),
      "out_proj.weight": uniform(16),
      "attn.*bias": zero!,
      linear1: uniform(16),
      linear2: uniform(48),
      ...affine,
    },
  ],
  // A whole Transformer starts all its matrices as Xavier does.
  [
    new nn.Transformer(16, 4, { numEncoderLayers: 1, numDecoderLayers: 1, ...inner }),
    {
      in_proj_weight: xavier(64),
      "out_proj.weight": xavier(32),
      "attn.*bias": zero!,
      "linear..weight": xavier(64),
      "linear1.bias": uniform(16),
      "linear2.bias": uniform(48),
      ...affine,
    },
  ],
];

it.each(LAYERS.map(([layer, starts]) => [layer.constructor.name, layer, starts] as const))("%s", (_, layer, starts) => {
  const state = Object.entries(layer.stateDict() as Record<string, Tensor>);
  expect(state.length).toBeGreaterThan(0);
  for (const [name, tensor] of state) {
    const pattern = Object.keys(starts).find((each) => new RegExp(each).test(name));
    const start = starts[pattern ?? ""];
    expect(start, name).toBeDefined();
    const values = [...tensor.dataSync()].map(Number);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    if ("all" in start!) expect(new Set(values), name).toEqual(new Set([start.all]));
    else if ("std" in start!) {
      // Of 1,000 numbers: within five standard errors.
      const variance = values.reduce((sum, value) => sum + value ** 2, 0) / values.length;
      expect(Math.abs(variance / start.std ** 2 - 1), name).toBeLessThan(5 * Math.sqrt(2 / values.length));
      expect(Math.abs(values.reduce((a, b) => a + b, 0) / values.length), name).toBeLessThan(
        5 / Math.sqrt(values.length),
      );
    } else {
      // The largest of n uniform numbers is hardly ever below the bound times 1 - 5 / n.
      const near = start!.uniform * (1 - 10 / values.length);
      expect(Math.max(-least, most), name).toBeLessThanOrEqual(start!.uniform * (1 + 1e-6));
      expect(Math.min(-least, most), name).toBeGreaterThan(near);
    }
  }
});
