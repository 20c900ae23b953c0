/** What each port is: a training program as users write it. Its twin in Python has the same name and place. */
import type { compile, DType, Tensor } from "@opt/core";
import type { Module } from "@opt/nn";

interface Program {
  /** Whose first weights the twin takes over, by name. */
  readonly models: Readonly<Record<string, Module>>;
  /** One training step, to be compiled as a whole, unless it is asynchronous: LBFGS calls what it is given several times. */
  readonly step: (...batch: never[]) => Tensor | Promise<Tensor>;
  readonly isAsync?: boolean;
  /** Called after each step: schedules. */
  readonly endEpoch?: () => void;
}

export interface Port {
  readonly program: (dtype: DType, compiled: typeof compile) => Program | Promise<Program>;
  /** The inputs of one step, of random numbers. */
  readonly batch: () => readonly Tensor[];
}
