/** Roots divided by a scalar on every instruction set: multiplied or divided, each quotient is the correctly rounded one. */
import { divisors, FAR_DIVISORS, squaresOfAllKinds, squaresOfAllMantissas, wrongQuotients } from "@opt/testkit";
import { dividedRoots } from "@opt/testkit/built-rules";
import { describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";
import { loadAddon } from "./load-addon";

const sets = missingDevice
  ? []
  : loadAddon()
      .instructionSets()
      .filter((name) => name !== null);

describe.skipIf(missingDevice)(`roots divided by a scalar${missingDevice ?? ""}`, () => {
  it.each(sets)("of all mantissas with %s", (instructionSet) => {
    const backend = openCpuBackend({ instructionSet, threads: 1 });
    expect(wrongQuotients(backend, dividedRoots, squaresOfAllMantissas(), divisors())).toEqual([]);
    backend.close();
  });

  it.each(sets)("of numbers of all kinds, by numbers of all kinds, with %s", (instructionSet) => {
    const backend = openCpuBackend({ instructionSet, threads: 1 });
    expect(wrongQuotients(backend, dividedRoots, squaresOfAllKinds(), [...divisors(), ...FAR_DIVISORS])).toEqual([]);
    backend.close();
  });
});
