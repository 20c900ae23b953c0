/** Runs of PyTorch's own optimizers, through given gradients in one process. OPT_TORCH_PYTHON names a Python that has torch. */
import { execFileSync } from "node:child_process";
import { torchPython } from "../torch-calls/python";
import type { Run } from "./run-optimizer";

/** A run by an optimizer of torch.optim. */
export interface TorchRun extends Run {
  readonly name: string;
  readonly dtype: "f32" | "f64";
  readonly start: Float32Array;
  readonly gradients: readonly (Float32Array | null)[];
}

/** The parameter in the end, as `param`, and its state under PyTorch's names, but for `step`. */
export type TorchEnd = ReadonlyMap<string, Float32Array | Float64Array | number>;

/** The roots of float32 are those of float64, rounded: PyTorch's own are off by a bit now and then. */
const PROGRAM = `
import base64, inspect, json, re, sys, torch
torch.set_num_threads(1)
plain = torch.Tensor.sqrt
torch.Tensor.sqrt = lambda x: plain(x.double()).to(x.dtype)
torch.Tensor.sqrt_ = lambda x: x.copy_(plain(x.double()))
def snake(key): return re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), key)
def run(case):
    dtype = getattr(torch, case["dtype"])
    read = lambda text: torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype).reshape(case["shape"])
    write = lambda tensor: base64.b64encode(tensor.detach().contiguous().numpy().tobytes()).decode() if tensor.dim() else tensor.item()
    param = torch.nn.Parameter(read(case["start"]))
    options = {snake(key): value for key, value in case["options"].items()}
    kind = getattr(torch.optim, case["name"])
    if "foreach" in inspect.signature(kind).parameters: options["foreach"] = False
    optimizer = kind([param], **options)
    for gradient in case["gradients"]:
        param.grad = None if gradient is None else read(gradient)
        optimizer.step()
    state = {key: write(value) for key, value in optimizer.state[param].items() if key != "step" and value is not None}
    return {"param": write(param), **state}
print(json.dumps([run(case) for case in json.load(sys.stdin)]))
`;

const base64 = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");

/** What PyTorch gives for each run. */
export function torchRuns(runs: readonly TorchRun[]): TorchEnd[] {
  const stored = runs.map(({ name, options, dtype, start, gradients, shape = [start.length] }) => ({
    ...{ name, options, shape },
    dtype: dtype === "f32" ? "float32" : "float64",
    start: base64(start),
    gradients: gradients.map((gradient) => gradient && base64(gradient)),
  }));
  const input = { input: JSON.stringify(stored), encoding: "utf8", maxBuffer: 1 << 28 } as const;
  const ends = JSON.parse(execFileSync(torchPython!, ["-c", PROGRAM], input)) as Record<string, string | number>[];
  return ends.map((end, i) => {
    const read = (text: string) => {
      const { buffer } = Uint8Array.from(Buffer.from(text, "base64"));
      return runs[i]!.dtype === "f32" ? new Float32Array(buffer) : new Float64Array(buffer);
    };
    return new Map(
      Object.entries(end).map(([key, value]) => [key, typeof value === "number" ? value : read(value)] as const),
    );
  });
}
