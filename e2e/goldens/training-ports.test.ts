// Programs as PyTorch users write them, trained beside PyTorch from the same weights, which it loads by their names: every loss.
import { Adam } from "@opt/adam-amsgrad";
import { Generator, type Tensor, tensor, tidy } from "@opt/core";
import {
  AvgPool2d,
  BatchNorm2d,
  bceWithLogits,
  Conv2d,
  crossEntropy,
  Flatten,
  LayerNorm,
  Linear,
  LSTM,
  Module,
  MultiheadAttention,
  ReLU,
  Sequential,
  SiLU,
} from "@opt/nn";
import { askTorch, type CallInput, expectAnswer, Random, type TorchCall, torchPython, withoutTorch } from "@opt/testkit";
import { describe, it } from "vitest";

const STEPS = 60;
const seeded = () => ({ generator: new Generator(5) });

class Sequences extends Module {
  readonly lstm = new LSTM(3, 8, { numLayers: 2, ...seeded() });
  readonly head = new Linear(8, 1, seeded());

  forward(x: Tensor): Tensor {
    const [output] = this.lstm.forward(x);
    return this.head.forward(output.slice(-1).squeeze(0)).squeeze(1);
  }
}

class Block extends Module {
  readonly norm = new LayerNorm(8);
  readonly attention = new MultiheadAttention(8, 2, { batchFirst: true, ...seeded() });
  readonly mlp = new Sequential(new LayerNorm(8), new Linear(8, 16, seeded()), new SiLU(), new Linear(16, 8, seeded()));
  readonly head = new Linear(8, 4, seeded());

  forward(x: Tensor): Tensor {
    const normal = this.norm.forward(x);
    const [seen] = this.attention.forward(normal, normal, normal, { isCausal: true, needWeights: false });
    const attended = x.add(seen);
    return this.head.forward(attended.add(this.mlp.forward(attended)));
  }
}

interface Port {
  readonly model: Module & { forward(x: Tensor): Tensor };
  readonly loss: (y: Tensor, target: Tensor) => Tensor;
  /** Makes `model`, and a function `loss(x, target)`. */
  readonly python: string;
  readonly shape: readonly number[];
  readonly target: { readonly shape: readonly number[]; readonly classes: number; readonly dtype: "i32" | "f32" };
}

const PORTS: Readonly<Record<string, Port>> = {
  "a CNN with BatchNorm": {
    model: new Sequential(
      new Conv2d(1, 4, 3, { padding: 1, ...seeded() }),
      new BatchNorm2d(4),
      new ReLU(),
      new AvgPool2d(2),
      new Flatten(),
      new Linear(64, 5, seeded()),
    ),
    loss: (y, target) => crossEntropy(y, target),
    python: `
model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 5))
loss = lambda x, target: F.cross_entropy(model(x), target.long())`,
    shape: [16, 1, 8, 8],
    target: { shape: [16], classes: 5, dtype: "i32" },
  },
  "an LSTM": {
    model: new Sequences(),
    loss: (y, target) => bceWithLogits(y, target),
    python: `
model = nn.ModuleDict({"lstm": nn.LSTM(3, 8, 2), "head": nn.Linear(8, 1)})
loss = lambda x, target: F.binary_cross_entropy_with_logits(model["head"](model["lstm"](x)[0][-1]).squeeze(1), target)`,
    shape: [7, 12, 3],
    target: { shape: [12], classes: 2, dtype: "f32" },
  },
  "a transformer block": {
    model: new Block(),
    loss: (y, target) => crossEntropy(y, target),
    python: `
mlp = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8))
attention = nn.MultiheadAttention(8, 2, batch_first=True)
model = nn.ModuleDict({"norm": nn.LayerNorm(8), "attention": attention, "mlp": mlp, "head": nn.Linear(8, 4)})
def loss(x, target):
    n = model["norm"](x)
    later = torch.triu(torch.ones(6, 6, dtype=torch.bool), 1)
    x = x + model["attention"](n, n, n, attn_mask=later, need_weights=False)[0]
    y = model["head"](x + model["mlp"](x))
    return F.cross_entropy(y.reshape(-1, 4), target.long().reshape(-1))`,
    shape: [5, 6, 8],
    target: { shape: [5, 6], classes: 4, dtype: "i32" },
  },
};

function callOf(name: string, { model, loss, python, shape, target }: Port, random: Random): TorchCall {
  const size = (extents: readonly number[]) => extents.reduce((a, b) => a * b, 1);
  const data: CallInput = {
    values: Float32Array.from({ length: size(shape) }, () => 4 * random.uniform() - 2),
    shape,
    dtype: "f32",
  };
  const labels: CallInput = {
    values: Array.from({ length: size(target.shape) }, () => random.below(target.classes)),
    shape: target.shape,
    dtype: target.dtype,
  };
  const state = Object.entries(model.stateDict()).map(([key, value]): [string, CallInput] => [
    key,
    { values: value.dataSync(), shape: value.shape, dtype: value.dtype },
  ]);
  const code = `${python}
model.load_state_dict(dict(zip(${JSON.stringify(state.map(([key]) => key))}, inputs[2:])))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for step in range(${STEPS}):
    value = loss(a, b)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    losses.append(value.detach())
;;torch.stack(losses)`;
  const run = (x: Tensor, t: Tensor) => {
    const optimizer = new Adam(model.namedParameters(), { lr: 1e-2 });
    const losses = Array.from({ length: STEPS }, () => {
      const value = tidy(() => {
        const result = loss(model.forward(x), t);
        result.backward();
        return result.dataSync()[0]!;
      });
      optimizer.step();
      optimizer.zeroGrad();
      return value;
    });
    return tensor(losses);
  };
  const tolerance = { absolute: 1e-5, relative: 0 };
  return { name, inputs: [data, labels, ...state.map(([, given]) => given)], code, run: run as TorchCall["run"], tolerance };
}

describe.skipIf(torchPython === undefined)(`each of ${STEPS} losses is PyTorch's${withoutTorch}`, () => {
  const random = new Random(3);
  const calls = Object.entries(PORTS).map(([name, port]) => callOf(name, port, random));
  const answers = torchPython === undefined ? [] : askTorch(torchPython, calls);
  it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("of %s", (_, call, answer) => expectAnswer(call, answer));
});
