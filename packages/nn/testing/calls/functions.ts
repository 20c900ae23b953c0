/** Calls of functions that are no layers: of weights and grids of one's own. */
import type { Tensor } from "@opt/core";
import type { CallInput, TorchCall } from "@opt/testkit";
import * as nn from "../../src/index";
import { python, RandomInputs } from "../random-inputs";

/** Each function in `count` random configurations. */
export function functionCalls(count: number): TorchCall[] {
  const make = new RandomInputs(71);
  const calls: TorchCall[] = [];
  for (let i = 0; i < count; i++) configuration(make, i, calls);
  return calls;
}

function configuration(make: RandomInputs, i: number, calls: TorchCall[]): void {
  const dtype = i % 2 === 0 ? "f64" : "f32";
  const tolerance = dtype === "f64" ? { absolute: 1e-10, relative: 1e-10 } : { absolute: 1e-4, relative: 1e-4 };
  const add = (inputs: readonly CallInput[], code: string, run: (...inputs: Tensor[]) => Tensor, second = true) =>
    calls.push({
      name: `${i}: ${code} of ${inputs.map(({ shape }) => `[${shape}]`).join(" ")}, ${dtype}`,
      inputs,
      code,
      run,
      second: second && dtype === "f64",
      tolerance,
    });
  const x = (...shape: number[]) => make.numbers(shape, dtype);
  const times = (length: number, of: () => number) => Array.from({ length }, of);

  const [inside, out] = [make.between(1, 4), make.between(1, 4)];
  const leading = times(make.between(0, 2), () => make.between(0, 3));
  add([x(...leading, inside), x(out, inside), x(out)], "F.linear(a, b, c)", (a, b, c) => nn.linear(a!, b!, c!));
  add([x(...leading, inside), x(inside)], "F.linear(a, b)", (a, b) => nn.linear(a!, b!));
  const other = make.between(1, 3);
  add([x(...leading, inside), x(...leading, other), x(out, inside, other)], "F.bilinear(a, b, c)", (a, b, c) =>
    nn.bilinear(a!, b!, c!),
  );

  const axes = make.between(2, 3);
  const [mode, paddingMode] = [
    make.random.pick(["bilinear", "nearest"] as const),
    make.random.pick(["zeros", "border", "reflection"] as const),
  ];
  const alignCorners = make.flip();
  const batch = make.between(1, 2);
  add(
    [
      x(batch, make.between(1, 2), ...times(axes, () => make.between(1, 4))),
      make.numbers([batch, ...times(axes, () => make.between(1, 3)), axes], dtype, { low: -3, high: 3 }),
    ],
    `F.grid_sample(a, b, mode="${mode}", padding_mode="${paddingMode}", align_corners=${python(alignCorners)})`,
    (a, b) => nn.gridSample(a!, b!, { mode, paddingMode, alignCorners }),
    false, // of which PyTorch has none
  );
  const size = [batch, 1, ...times(axes, () => make.between(1, 4))];
  add([x(batch, axes, axes + 1)], `F.affine_grid(a, (${size}), align_corners=${python(alignCorners)})`, (a) =>
    nn.affineGrid(a!, size, { alignCorners }),
  );

  // PyTorch's images of one column depend on their memory format.
  const kind = make.random.pick(["bilinear", "bicubic"] as const);
  const isSize = make.flip();
  const numbers = times(2, () => (isSize ? make.between(2, 8) : make.random.pick([0.5, 0.75, 1.5, 2])));
  add(
    [x(2, 2, make.between(4, 8), make.between(4, 8))],
    `F.interpolate(a, ${isSize ? "size" : "scale_factor"}=(${numbers}), mode="${kind}", align_corners=${python(alignCorners)}, antialias=True)`,
    (a) =>
      nn.interpolate(a!, { [isSize ? "size" : "scaleFactor"]: numbers, mode: kind, alignCorners, antialias: true }),
  );
}
