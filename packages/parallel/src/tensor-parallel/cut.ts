/** A rank's part of a tensor that is divided along an axis. */
import { noGrad, parameter, type Tensor, tidy } from "@opt/core";
import type { Communicator } from "../communicator/communicator";
import { partsOf } from "../communicator/parts";

/** The rows or columns of a whole tensor that are this rank's, as a parameter. */
export function cut(whole: Tensor, axis: number, communicator: Communicator): Tensor {
  const { begin, end } = partsOf(whole.shape[axis]!, communicator.size)[communicator.rank]!;
  const part = noGrad(() => tidy(() => whole.detach().slice(begin, end, axis)));
  const made = parameter(part);
  part.dispose();
  return made;
}
