/** Which operations each device has in which dtypes: tried, and written as a table. */
import {
  conv2d,
  type Device,
  type DType,
  gather,
  layerNorm,
  maxPool2d,
  OptError,
  type Tensor,
  tensor,
  tidy,
} from "@opt/core";
import { crossEntropy } from "@opt/nn";

const DTYPES = ["f32", "f64", "bf16", "f16", "i32", "u8", "bool"] as const satisfies readonly DType[];

interface Operands {
  readonly x: Tensor;
  readonly images: Tensor;
  readonly indices: Tensor;
}

const OPERATIONS: Readonly<Record<string, (operands: Operands) => Tensor>> = {
  "add, sub, mul": ({ x }) => x.add(x).sub(x).mul(x),
  "div, sqrt": ({ x }) => x.div(x).sqrt(),
  "neg, abs, relu": ({ x }) => x.neg().abs().relu(),
  "maximum, minimum": ({ x }) => x.maximum(x).minimum(x),
  "exp, log, tanh, sigmoid": ({ x }) => x.exp().log().tanh().sigmoid(),
  "gelu, pow": ({ x }) => x.gelu().pow(2),
  "sum, mean": ({ x }) => x.sum(0).add(x.mean(0)),
  max: ({ x }) => x.max(0),
  argmax: ({ x }) => x.argmax(0),
  matmul: ({ x }) => x.matmul(x),
  "reshape, slice, permute": ({ x }) => x.reshape([4]).slice(1, 3).reshape([1, 2]).permute([1, 0]),
  "softmax, logSoftmax": ({ x }) => x.softmax().add(x.logSoftmax()),
  gather: ({ x, indices }) => gather(x, indices),
  crossEntropy: ({ x, indices }) => crossEntropy(x, indices),
  layerNorm: ({ x }) => layerNorm(x, x.slice(0, 1).reshape([2])),
  conv2d: ({ images }) => conv2d(images, images),
  maxPool2d: ({ images }) => maxPool2d(images, 2),
};

const CASTS = "to";

/** For each operation, the dtypes in which the device has it. What is rejected by anything but an OptError is a bug. */
export async function coverageOf(device: Device): Promise<Readonly<Record<string, string>>> {
  const rows: Record<string, string> = {};
  for (const [name, run] of Object.entries(OPERATIONS)) {
    const works: DType[] = [];
    for (const dtype of DTYPES) if (await succeeds(device, dtype, run)) works.push(dtype);
    rows[name] = shown(works);
  }
  const casts: DType[] = [];
  for (const dtype of DTYPES)
    if (await succeeds(device, dtype, ({ x }) => tidy(() => x.to("f32").to(dtype)))) casts.push(dtype);
  return { ...rows, [CASTS]: shown(casts) };
}

async function succeeds(device: Device, dtype: DType, run: (operands: Operands) => Tensor): Promise<boolean> {
  const make = (shape: number[], as: DType) => tensor([1, 0, 1, 1], { shape, dtype: as, device });
  try {
    const result = tidy(() =>
      run({
        x: make([2, 2], dtype),
        images: make([1, 1, 2, 2], dtype),
        indices: tensor([0, 1], { dtype: "i32", device }),
      }),
    );
    await result.data();
    return true;
  } catch (error) {
    if (error instanceof OptError && (error.code === "UNSUPPORTED" || error.code === "BAD_DTYPE")) return false;
    throw error;
  }
}

function shown(dtypes: readonly DType[]): string {
  return dtypes.length === DTYPES.length ? "all" : dtypes.join(" ") || "–";
}

/** The page's table. */
export function coverageTable(columns: Readonly<Record<string, Readonly<Record<string, string>>>>): string {
  const names = Object.keys(columns);
  const rows = [...Object.keys(OPERATIONS), CASTS].map(
    (operation) => `| ${operation} | ${names.map((name) => columns[name]![operation]).join(" | ")} |`,
  );
  return [`| | ${names.join(" | ")} |`, `|${"---|".repeat(names.length + 1)}`, ...rows].join("\n");
}
