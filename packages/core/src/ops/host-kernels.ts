/** Core's own host kernels: the definition of all others. */
import type { HostKernels } from "../backend/host-kernels";
import { fourierTransform } from "./fft/pairs";
import { realFourierTransform } from "./fft/spectrum";
import { reflectRows } from "./matrix-algorithms/reflectors";
import { rotateRows } from "./matrix-algorithms/rotations";
import { bidiagonalUpdate, sumOfRows } from "./matrix-algorithms/singular";
import { tridiagonalUpdate } from "./matrix-algorithms/symmetric";

/** Core's own host kernels, by which those of devices are judged. */
export const ownHostKernels: HostKernels = {
  reflectRows,
  rotateRows,
  tridiagonalUpdate,
  sumOfRows,
  bidiagonalUpdate,
  fourierTransform,
  realFourierTransform,
};
