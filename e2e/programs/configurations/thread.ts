/** The program of a rank's worker: phases by `fit`, off its main thread. */
import type { Configuration } from "@opt/testkit/configurations";
import { expose } from "@opt/train/worker";
import { train } from "./phases";

expose((run, phase: { readonly one: Configuration; readonly index: number; readonly folder: string }) =>
  train({ ...phase, place: undefined, stepped: () => {}, callbacks: [run.report()] }),
);
