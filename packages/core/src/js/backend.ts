/** The js device: plain JavaScript on any engine. It defines what the others must compute, and serves where they cannot open. */
import type { Backend, Memory } from "../backend/backend";
import type { Kernel, Kind, Launch, Spec } from "../backend/spec";
import { OptError } from "../errors";
import { compileMap, compileRule, type MapFunction, type RuleFunction } from "./compile";
import { copy } from "./copy";
import { layerNorm, layerNormGrad } from "./layer-norm";
import { matmul } from "./matmul";
import { elements, JsMemory } from "./memory";
import { reduce, sumSquares } from "./reduce";
import { crossEntropy, crossEntropyGrad, softmax, softmaxGrad } from "./rows";
import { gather, scatterAdd } from "./rows-by-index";
import { forEachRow } from "./strided";
import { fold, maxPool2d, maxPool2dGrad, unfold } from "./windows";

interface RuleKernel extends Kernel<"rule"> {
  readonly run: RuleFunction;
}

interface MapKernel extends Kernel<"map"> {
  readonly run: MapFunction;
}

class JsBackend implements Backend {
  readonly name = "js";
  readonly dtypes = ["f32", "f64"] as const;
  readonly exact = true;

  allocate(bytes: number): Memory {
    try {
      return new JsMemory(new ArrayBuffer(bytes), bytes);
    } catch (cause) {
      throw new OptError(
        "OUT_OF_MEMORY",
        "js",
        `cannot allocate ${bytes} bytes.`,
        "Free tensors with dispose() or tidy().",
        { cause },
      );
    }
  }

  free(_memory: Memory): void {} // the garbage collector's work

  write(memory: Memory, byteOffset: number, bytes: Uint8Array): void {
    new Uint8Array((memory as JsMemory).buffer, byteOffset, bytes.length).set(bytes);
  }

  readSync(memory: Memory, byteOffset: number, bytes: number): Uint8Array {
    return new Uint8Array((memory as JsMemory).buffer, byteOffset, bytes).slice();
  }

  async read(memory: Memory, byteOffset: number, bytes: number): Promise<Uint8Array> {
    return this.readSync(memory, byteOffset, bytes);
  }

  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    const some = spec as unknown as Spec;
    if (some.kind === "rule") return { spec, run: compileRule(some.rule.program, some.dtype) } as Kernel<K>;
    if (some.kind === "map") return { spec, run: compileMap(some.program, some.dtype) } as Kernel<K>;
    return { spec };
  }

  launch(launch: Launch): void {
    switch (launch.kind) {
      case "rule": {
        const { spec, run } = launch.kernel as RuleKernel;
        for (const slices of launch.tensors)
          run(
            slices.map((slice) => elements(slice, spec.dtype)),
            launch.scalars,
          );
        return;
      }
      case "map": {
        const { spec, run } = launch.kernel as MapKernel;
        const inputs = launch.inputs.map((slice) => elements(slice, spec.dtype));
        const output = elements(launch.output, spec.dtype);
        const length = launch.shape.at(-1)!;
        const steps = launch.strides.map((strides) => strides.at(-1)!);
        forEachRow(launch.shape, launch.strides, (bases, row) => {
          run(inputs, bases, steps, output, row * length, length, launch.scalars);
        });
        return;
      }
      case "copy":
        return copy(launch.kernel.spec.from, launch.kernel.spec.to, launch);
      case "reduce":
        return reduce(launch.kernel.spec.op, launch.kernel.spec.dtype, launch);
      case "sumSquares":
        return sumSquares(launch.kernel.spec.dtype, launch);
      case "matmul": {
        const { dtype, transposeA, transposeB } = launch.kernel.spec;
        return matmul(dtype, transposeA, transposeB, launch);
      }
      case "gather":
        return gather(launch.kernel.spec.dtype, launch);
      case "scatterAdd":
        return scatterAdd(launch.kernel.spec.dtype, launch);
      case "softmax":
        return softmax(launch.kernel.spec.dtype, launch.kernel.spec.log, launch);
      case "softmaxGrad":
        return softmaxGrad(launch.kernel.spec.dtype, launch.kernel.spec.log, launch);
      case "layerNorm":
        return layerNorm(launch.kernel.spec.dtype, launch);
      case "layerNormGrad":
        return layerNormGrad(launch.kernel.spec.dtype, launch);
      case "crossEntropy":
        return crossEntropy(launch.kernel.spec.dtype, launch);
      case "crossEntropyGrad":
        return crossEntropyGrad(launch.kernel.spec.dtype, launch);
      case "unfold":
        return unfold(launch.kernel.spec.dtype, launch);
      case "fold":
        return fold(launch.kernel.spec.dtype, launch);
      case "maxPool2d":
        return maxPool2d(launch.kernel.spec.dtype, launch);
      case "maxPool2dGrad":
        return maxPool2dGrad(launch.kernel.spec.dtype, launch);
    }
  }

  async sync(): Promise<void> {}

  close(): void {}
}

export function openJsBackend(): Backend {
  return new JsBackend();
}
