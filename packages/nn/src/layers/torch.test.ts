// Layers in random configurations, in f32 and f64, against PyTorch: values, gradients and running statistics.
import { askTorch, expectAnswer, type TorchCall, torchPython, withoutTorch } from "@opt/testkit";
import { describe, it } from "vitest";
import {
  AdaptiveAvgPool2d,
  AvgPool2d,
  BatchNorm1d,
  BatchNorm2d,
  Conv1d,
  Conv2d,
  ConvTranspose2d,
  GroupNorm,
  RMSNorm,
} from "../index";
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
  groupNorm(dtype, add);
  rmsNorm(dtype, add);
  convolutions(dtype, add);
  pooling(dtype, add);
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

function groupNorm(dtype: "f32" | "f64", add: Add): void {
  const groups = make.between(1, 3);
  const channels = groups * make.between(1, 3);
  const shape = [make.between(1, 3), channels, make.between(2, 3), make.between(1, 4)].slice(0, make.between(3, 4));
  add(
    `GroupNorm ${groups} [${shape}]`,
    [make.numbers(shape, dtype), make.numbers([channels], dtype), make.numbers([channels], dtype)],
    `F.group_norm(a, ${groups}, b, c)`,
    (a, b, c) => holding(new GroupNorm(groups, channels, { dtype }), { weight: b, bias: c }).forward(a!),
  );
}

function rmsNorm(dtype: "f32" | "f64", add: Add): void {
  const shape = Array.from({ length: make.between(1, 3) }, () => make.between(1, 4));
  const over = shape.slice(-make.between(1, shape.length));
  const eps = make.random.pick([null, 1e-3]);
  add(
    `RMSNorm [${over}] of [${shape}]`,
    [make.numbers(shape, dtype), make.numbers(over, dtype)],
    `F.rms_norm(a, ${JSON.stringify(over)}, b, ${python(eps)})`,
    (a, b) => holding(new RMSNorm(over, { dtype, eps }), { weight: b }).forward(a!),
  );
}

function convolutions(dtype: "f32" | "f64", add: Add): void {
  const groups = make.between(1, 2);
  const [input, output] = [groups * make.between(1, 2), groups * make.between(1, 3)];
  const [kernel, stride, padding, dilation] = [
    make.between(1, 3),
    make.between(1, 2),
    make.between(0, 2),
    make.between(1, 2),
  ];
  const options = { groups, stride, padding, dilation, dtype };
  const settings = `stride=${stride}, padding=${padding}, dilation=${dilation}, groups=${groups}`;
  const [height, width] = [make.between(5, 7), make.between(5, 7)];
  const bias = make.numbers([output], dtype);
  add(
    `Conv1d ${settings}`,
    [make.numbers([2, input, width], dtype), make.numbers([output, input / groups, kernel], dtype), bias],
    `F.conv1d(a, b, c, ${settings})`,
    (a, b, c) => holding(new Conv1d(input, output, kernel, options), { weight: b, bias: c }).forward(a!),
  );
  add(
    `Conv2d ${settings}`,
    [make.numbers([2, input, height, width], dtype), make.numbers([output, input / groups, kernel, 2], dtype), bias],
    `F.conv2d(a, b, c, ${settings})`,
    (a, b, c) => holding(new Conv2d(input, output, [kernel, 2], options), { weight: b, bias: c }).forward(a!),
  );
  const outputPadding = make.between(0, Math.max(stride, dilation) - 1);
  add(
    `ConvTranspose2d ${settings} ${outputPadding}`,
    [make.numbers([2, input, height, width], dtype), make.numbers([input, output / groups, kernel, 2], dtype), bias],
    `F.conv_transpose2d(a, b, c, ${settings}, output_padding=${outputPadding})`,
    (a, b, c) =>
      holding(new ConvTranspose2d(input, output, [kernel, 2], { ...options, outputPadding }), {
        weight: b,
        bias: c,
      }).forward(a!),
  );
}

function pooling(dtype: "f32" | "f64", add: Add): void {
  const shape = [make.between(1, 2), make.between(1, 3), make.between(3, 7), make.between(3, 7)];
  const kernel = [make.between(1, 3), make.between(1, 3)] as const;
  const [stride, padding] = [make.between(1, 3), make.between(0, Math.floor(Math.min(...kernel) / 2))];
  const countIncludePad = make.flip();
  add(
    `AvgPool2d ${kernel} ${stride} ${padding}`,
    [make.numbers(shape, dtype)],
    `F.avg_pool2d(a, ${JSON.stringify(kernel)}, ${stride}, ${padding}, count_include_pad=${python(countIncludePad)})`,
    (a) => new AvgPool2d(kernel, { stride, padding, countIncludePad }).forward(a!),
  );
  const size = [make.between(1, 5), make.random.pick([null, 1, 2, 4])] as const;
  add(
    `AdaptiveAvgPool2d ${size[0]} ${size[1]} of [${shape}]`,
    [make.numbers(shape, dtype)],
    `F.adaptive_avg_pool2d(a, (${size[0]}, ${python(size[1])}))`,
    (a) => new AdaptiveAvgPool2d(size).forward(a!),
  );
}

describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
  const answers = torchPython === undefined ? [] : askTorch(torchPython, calls);
  it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
    expectAnswer(call, answer),
  );
});
