/** A rank's part of a tensor that is divided along an axis. */
import { noGrad, type Placement, parameter, type Tensor, tidy } from "@opt/core";
import type { Communicator } from "../communicator/communicator";
import { partsOf } from "../communicator/parts";
import { axisOf } from "./axis";

/** The rows or columns of a tensor that are this rank's, as a parameter. A tensor that is a part already is cut further. */
export function cut(whole: Tensor, dim: number, communicator: Communicator): Tensor {
  const { begin, end } = partsOf(whole.shape[dim]!, communicator.size)[communicator.rank]!;
  const part = noGrad(() => tidy(() => whole.detach().slice(begin, end, dim)));
  const made = parameter(part);
  part.dispose();
  made.placement = cutFurther(whole, dim, communicator);
  return made;
}

function cutFurther({ shape, placement }: Tensor, dim: number, communicator: Communicator): Placement<Tensor> {
  const before = placement ?? { shape, cuts: [] };
  return { shape: before.shape, cuts: [...before.cuts, { axis: axisOf(communicator), dim }] };
}
