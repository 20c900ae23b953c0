/** Formulas of several tensors in one launch, for what has no gradient. */
import { OptError } from "../../errors/errors";
import { computeIn } from "../../ops/cast";
import { launchMap } from "../../ops/map";
import { Expression } from "../../rule/expression";
import { type Program, trace } from "../../rule/program";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import type { ComputeDType } from "../../values/dtype";
import { broadcastShapes } from "../../values/shape";

type Formula = (...tensors: Tensor[]) => Tensor;

/** @returns the launch, of tensors of one dtype that broadcast */
export function formula(forward: (...operands: Expression[]) => Expression): Formula {
  let program: Program | undefined;
  const launched: Formula = (...tensors) => {
    const samples = overSamples(launched, ...tensors);
    if (samples) return samples;
    const names = tensors.map((_, i) => "abcd"[i]!);
    const expression = () => forward(...names.map((_, slot) => new Expression("buffer", [], slot)));
    program ??= trace(names, [], [{ slot: 0, expression: expression() }]);
    const shape = broadcastShapes(
      "formula",
      tensors.map((each) => each.shape),
    );
    return launchMap(program, tensors[0]!.dtype as ComputeDType, tensors, [], shape);
  };
  return launched;
}

/** The slope of samples by a parameter: in float64 where the device has it. Its own gradient throws, as PyTorch's does. */
export function slopeOfSamples(where: string, forward: (...operands: Expression[]) => Expression): Formula {
  const slope = formula(forward);
  return (...tensors) => {
    const { dtype, device } = tensors[0]!;
    const compute = device.backend.dtypes.includes("f64") ? "f64" : "f32";
    const value = noGrad(() => computeIn(compute, tensors, dtype, slope));
    return record(where, value, tensors, [], () => {
      throw new OptError(
        "UNSUPPORTED",
        where,
        "samples have no second gradient, as in PyTorch.",
        "Leave out createGraph.",
      );
    });
  };
}
