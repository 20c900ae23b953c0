/** An op made of row programs: what a new one takes beside its expressions. */
import { type Tensor, withGradient, zeros } from "@opt/core";
import { launchRows } from "@opt/core/backend";
import { temperedGradRows, temperedRows } from "./row-programs/tempered";

/** log(softmax(coldness x)) of the rows of a matrix. */
export function temperedLogSoftmax(x: Tensor, coldness: number): Tensor {
  const [rows, length] = x.shape as [number, number];
  const launch = { scalars: { coldness }, rows, length };
  const empty = () => zeros(x.shape, { device: x.device });
  const y = empty();
  launchRows(temperedRows, { inputs: { x }, outputs: { y }, ...launch });
  return withGradient(y, [x], (g) => {
    const dx = empty();
    launchRows(temperedGradRows, { inputs: { y, g }, outputs: { dx }, ...launch });
    return [dx];
  });
}
