/** Sliding windows over images. Every output element gathers what it needs: nothing is added by two invocations. */
import { indent, type Launch, type Spec, type Window2d, windowElements } from "@opt/core/backend";
import type { Execution, KernelSource } from "../kernel";
import { IS_NAN, type SharedDType, sharedDType } from "../shader/group";
import { LANES, type Parameter, type Shader, type View } from "../shader/shader";

const SIZES = [
  "size",
  "height",
  "width",
  "out_height",
  "out_width",
  "kernel_y",
  "kernel_x",
  "stride_y",
  "stride_x",
  "padding_y",
  "padding_x",
  "dilation_y",
  "dilation_x",
] as const;

const PARAMS = Object.fromEntries(SIZES.map((name) => [name, "i32"])) as Record<(typeof SIZES)[number], Parameter>;

function paramsOf(window: Window2d, size: number): Record<(typeof SIZES)[number], number> {
  const { height, width, outHeight, outWidth, kernel, stride, padding, dilation } = window;
  return {
    size,
    height,
    width,
    out_height: outHeight,
    out_width: outWidth,
    kernel_y: kernel[0],
    kernel_x: kernel[1],
    stride_y: stride[0],
    stride_x: stride[1],
    padding_y: padding[0],
    padding_x: padding[1],
    dilation_y: dilation[0],
    dilation_x: dilation[1],
  };
}

/** A shader whose invocation `i` makes one element. */
function elementShader(
  name: string,
  slices: Record<string, View>,
  lines: readonly string[],
  declarations = "",
): Shader {
  const header = [`let i = i32(group) * ${LANES} + i32(lane);`, "if (i >= params.size) { return; }"];
  return { name, slices, params: PARAMS, declarations, body: () => [...header, ...lines].join("\n") };
}

/** Position of an output pixel, and the plane before it. */
const OUT_POSITION = [
  "let out_x = i % params.out_width;",
  "let out_y = i / params.out_width % params.out_height;",
  "let before = i / (params.out_width * params.out_height);",
];

const unfoldShader = (type: SharedDType) =>
  elementShader("unfold", { input: type, output: type }, [
    ...OUT_POSITION,
    "let tap_x = before % params.kernel_x;",
    "let tap_y = before / params.kernel_x % params.kernel_y;",
    "let plane = before / (params.kernel_x * params.kernel_y);",
    "let x = out_x * params.stride_x + tap_x * params.dilation_x - params.padding_x;",
    "let y = out_y * params.stride_y + tap_y * params.dilation_y - params.padding_y;",
    `var value = ${type}(0);`,
    "if (x >= 0 && x < params.width && y >= 0 && y < params.height) {",
    "  value = input(u32((plane * params.height + y) * params.width + x));",
    "}",
    "put_output(u32(i), value);",
  ]);

/** A loop over the windows that see pixel `i`: by kernel position, the one output position that it gives, if any. */
function overWindows(type: SharedDType, lines: readonly string[]): string[] {
  return [
    "let x = i % params.width;",
    "let y = i / params.width % params.height;",
    "let plane = i / (params.width * params.height);",
    `var sum = ${type}(0);`,
    "for (var tap_y = 0; tap_y < params.kernel_y; tap_y++) {",
    "  let reach_y = y + params.padding_y - tap_y * params.dilation_y;",
    "  let out_y = reach_y / params.stride_y;",
    "  if (reach_y < 0 || out_y * params.stride_y != reach_y || out_y >= params.out_height) { continue; }",
    "  for (var tap_x = 0; tap_x < params.kernel_x; tap_x++) {",
    "    let reach_x = x + params.padding_x - tap_x * params.dilation_x;",
    "    let out_x = reach_x / params.stride_x;",
    "    if (reach_x < 0 || out_x * params.stride_x != reach_x || out_x >= params.out_width) { continue; }",
    ...indent(lines, 4),
    "  }",
    "}",
    "put_output(u32(i), sum);",
  ];
}

const foldShader = (type: SharedDType) =>
  elementShader(
    "fold",
    { input: type, output: type },
    overWindows(type, [
      "let row = (plane * params.kernel_y + tap_y) * params.kernel_x + tap_x;",
      "sum += input(u32((row * params.out_height + out_y) * params.out_width + out_x));",
    ]),
  );

const maxPoolShader = (type: SharedDType) =>
  elementShader(
    "max pool",
    { input: type, output: type, indices: "i32" },
    [
      ...OUT_POSITION,
      "var best = -1;",
      `var largest = ${type}(0);`,
      "for (var tap_y = 0; tap_y < params.kernel_y; tap_y++) {",
      "  let y = out_y * params.stride_y + tap_y * params.dilation_y - params.padding_y;",
      "  if (y < 0 || y >= params.height) { continue; }",
      "  for (var tap_x = 0; tap_x < params.kernel_x; tap_x++) {",
      "    let x = out_x * params.stride_x + tap_x * params.dilation_x - params.padding_x;",
      "    if (x < 0 || x >= params.width) { continue; }",
      "    let value = input(u32((before * params.height + y) * params.width + x));",
      `    if (best < 0 || value > largest${type === "f32" ? " || is_nan(value)" : ""}) {`,
      "      best = y * params.width + x;",
      "      largest = value;",
      "    }",
      "  }",
      "}",
      "put_output(u32(i), largest);",
      "put_indices(u32(i), best);",
    ],
    type === "f32" ? IS_NAN : "",
  );

const MAX_POOL_GRAD = elementShader(
  "max pool gradient",
  { gradient: "f32", indices: "i32", output: "f32" },
  overWindows("f32", [
    "let at = u32((plane * params.out_height + out_y) * params.out_width + out_x);",
    "if (indices(at) == y * params.width + x) { sum += gradient(at); }",
  ]),
);

const groupsOf = (size: number) => Math.ceil(size / LANES);

export const unfold: KernelSource<"unfold", Shader> = {
  prepare: ({ dtype }: Spec<"unfold">) => unfoldShader(sharedDType(dtype)),
  launch({ input, output, window }: Launch<"unfold">, shader: Shader, execution: Execution) {
    const { columns } = windowElements(window);
    execution.dispatch(shader, [input, output], paramsOf(window, columns), groupsOf(columns));
  },
};

export const fold: KernelSource<"fold", Shader> = {
  prepare: ({ dtype }: Spec<"fold">) => foldShader(sharedDType(dtype)),
  launch({ input, output, window }: Launch<"fold">, shader: Shader, execution: Execution) {
    const { image } = windowElements(window);
    execution.dispatch(shader, [input, output], paramsOf(window, image), groupsOf(image));
  },
};

export const maxPool2d: KernelSource<"maxPool2d", Shader> = {
  prepare: ({ dtype }: Spec<"maxPool2d">) => maxPoolShader(sharedDType(dtype)),
  launch({ input, output, indices, window }: Launch<"maxPool2d">, shader: Shader, execution: Execution) {
    const { pooled } = windowElements(window);
    execution.dispatch(shader, [input, output, indices], paramsOf(window, pooled), groupsOf(pooled));
  },
};

export const maxPool2dGrad: KernelSource<"maxPool2dGrad", Shader> = {
  prepare: () => MAX_POOL_GRAD,
  launch({ gradient, indices, output, window }: Launch<"maxPool2dGrad">, shader: Shader, execution: Execution) {
    const { image } = windowElements(window);
    execution.dispatch(shader, [gradient, indices, output], paramsOf(window, image), groupsOf(image));
  },
};
