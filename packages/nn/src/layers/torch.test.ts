// Layers in random configurations, in f32 and f64, against PyTorch: values, gradients and running statistics.
import { askTorch, expectAnswer, type TorchCall } from "@opt/testkit";
import { describe, it } from "vitest";
import { BatchNorm1d, BatchNorm2d } from "../index";
import { holding, RandomInputs } from "../testing/random-inputs";

const make = new RandomInputs(12);
const calls: TorchCall[] = [];
const python = (value: unknown) =>
  value === null ? "None" : value === true ? "True" : value === false ? "False" : String(value);
const loose = { f32: { absolute: 1e-4, relative: 1e-4 }, f64: { absolute: 1e-9, relative: 1e-9 } } as const;

for (let i = 0; i < 200; i++) {
  const dtype = i % 2 === 0 ? "f32" : "f64";
  const add = (name: string, inputs: TorchCall["inputs"], code: string, run: TorchCall["run"]) =>
    calls.push({ name: `${i}: ${name}, ${dtype}`, inputs, code, run, tolerance: loose[dtype] });
  batchNorm(dtype, add);
}

type Add = (name: string, inputs: TorchCall["inputs"], code: string, run: TorchCall["run"]) => void;

function batchNorm(dtype: "f32" | "f64", add: Add): void {
  const rank = make.random.pick([2, 3, 4]);
  const channels = make.between(1, 4);
  const shape = [make.between(2, 5), channels, make.between(1, 3), make.between(1, 4)].slice(0, rank);
  const momentum = make.random.pick([0.1, 0.5, null]);
  const [affine, tracked, training] = [make.flip(), make.flip(), make.flip()];
  const weights = [make.numbers([channels], dtype), make.numbers([channels], dtype)];
  const statistics = [
    make.numbers([channels], dtype, { requiresGrad: false }),
    make.numbers([channels], dtype, { low: 0.2, requiresGrad: false }),
  ];
  const kind = rank === 4 ? BatchNorm2d : BatchNorm1d;
  const made = `m = nn.${kind.name}(${channels}, momentum=${python(momentum)}, affine=${python(affine)}, track_running_stats=${python(tracked)}).to(a.dtype).train(${python(training)})`;
  const steps = [
    made,
    affine ? "del m.weight, m.bias; m.weight = b; m.bias = c" : "pass",
    tracked ? "m.running_mean.copy_(d); m.running_var.copy_(e)" : "pass",
    "first = m(a)",
    "second = m(a * 2)",
    `[first, second${tracked ? ", m.running_mean, m.running_var, m.num_batches_tracked" : ""}]`,
  ];
  add(
    `${kind.name} [${shape}] ${python(momentum)} ${affine} ${tracked} ${training}`,
    [make.numbers(shape, dtype), ...weights, ...statistics],
    steps
      .join(";;")
      .replaceAll("m.weight = b; m.bias = c", "m._parameters.clear(); m.__dict__.update(weight=b, bias=c)"),
    (a, b, c, d, e) => {
      const layer = new kind(channels, { momentum, affine, trackRunningStats: tracked, dtype }).train(training);
      if (affine) holding(layer, { weight: b, bias: c });
      if (tracked) {
        layer.running_mean!.set(d!);
        layer.running_var!.set(e!);
      }
      const outputs = [layer.forward(a!), layer.forward(a!.mul(2))];
      return tracked ? [...outputs, layer.running_mean!, layer.running_var!, layer.num_batches_tracked!] : outputs;
    },
  );
}

describe.skipIf(process.env.OPT_TORCH_PYTHON === undefined)("as PyTorch", () => {
  const answers = process.env.OPT_TORCH_PYTHON ? askTorch(process.env.OPT_TORCH_PYTHON, calls) : [];
  it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
    expectAnswer(call, answer),
  );
});
