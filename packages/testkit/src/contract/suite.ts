/**
 * The contract suite: every spec, on every device, in every dtype. A device is one call of `contractSuite`.
 * `npm run test:full` tries all cases of the largest tables in each memory layout. Others try one of four (one of eight in float64),
 * in the layouts by turns.
 */

import { OptError } from "@opt/core";
import type { Backend, FusedKind, MapDType, Rule } from "@opt/core/backend";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { attentionContract } from "./attention";
import { batchNormContract } from "./batch-norm";
import { ContractContext, type ContractTolerances, defaultTolerances } from "./context";
import { copyContract } from "./copy";
import { epilogueContract } from "./epilogue";
import { functionsContract } from "./functions";
import { groupNormContract } from "./group-norm";
import { hostKernelsContract } from "./host-kernels";
import { lstmContract } from "./lstm";
import { mapContract } from "./map";
import { matmulContract } from "./matmul";
import { memoryContract } from "./memory";
import { preparedContract } from "./prepared";
import { reduceContract } from "./reduce";
import { rowsContract } from "./rows";
import { rowsByIndexContract } from "./rows-by-index";
import { ruleContract } from "./rule";
import { sumsContract } from "./sums";
import { windowsContract } from "./windows";

export interface ContractDevice {
  readonly name: string;
  open(): Promise<Backend>;
  /** In which it computes; each other compute dtype shows as skipped. What i32 gives is tried on tensors. */
  readonly dtypes: readonly MapDType[];
  /** Rules must give the interpreter's bits, and NaN, infinities, -0 and subnormals count. By default true. */
  readonly exact?: boolean;
  /** Rules beside the built-in ones: those of the optimizers. */
  readonly rules?: readonly Rule[];
  /** What differs from `defaultTolerances`. */
  readonly tolerances?: Partial<ContractTolerances>;
  /** The first memory that is allocated while none is held ends where readable memory does: each region is put there in turn. */
  readonly edge?: boolean;
  /** The kernels of several ops in one that it has. By default none. */
  readonly fuses?: readonly FusedKind[];
  /** Its products take epilogues. By default false. */
  readonly epilogues?: boolean;
  /** It has kernels of the host's algorithms. By default false. */
  readonly hostKernels?: boolean;
  /** It reserves memory for compiled functions. By default true. */
  readonly reserves?: boolean;
  /** Matrix products, and rows in float32, have the words of js. By default what `exact` is. */
  readonly portable?: boolean;
  /** One of five cases of each table, for kernels that another device tries whole. By default false. */
  readonly sampled?: boolean;
  /** Why the device is not here. */
  readonly skip?: string | undefined;
}

/** Registers the tests of one device. */
export function contractSuite(device: ContractDevice): void {
  inEachDtype(device, (context) => {
    it("is what the suite was told", () => {
      const { backend } = context;
      expect(backend.name).toBe(device.name);
      expect(backend.exact).toBe(device.exact ?? true);
      expect(backend.fuses ?? []).toEqual(device.fuses ?? []);
      expect(backend.epilogues ?? false).toBe(device.epilogues ?? false);
      expect(backend.hostKernels !== undefined).toBe(device.hostKernels ?? false);
      expect(backend.reserve !== undefined).toBe(device.reserves ?? true);
      expect([...backend.dtypes].sort()).toEqual([...device.dtypes].sort());
    });

    memoryContract(context);
    preparedContract(context);
    ruleContract(context);
    mapContract(context);
    if (context.specials && context.dtype === "f32") functionsContract(context);
    reduceContract(context);
    sumsContract(context);
    matmulContract(context);
    if (device.epilogues) epilogueContract(context);
    copyContract(context);
    rowsByIndexContract(context);
    rowsContract(context);
    windowsContract(context);
    if (device.hostKernels && context.dtype === "f64") hostKernelsContract(context);
    if (device.fuses?.includes("attention")) attentionContract(context);
    if (device.fuses?.includes("batchNorm")) batchNormContract(context);
    if (device.fuses?.includes("groupNorm")) groupNormContract(context);
    if (device.fuses?.includes("lstm")) lstmContract(context);
  });
}

/** The part of the suite that tries rules: for rules that the device's own package does not know. */
export function rulesSuite(device: ContractDevice): void {
  inEachDtype(device, ruleContract);
}

function inEachDtype(device: ContractDevice, register: (context: ContractContext) => void): void {
  const { name, skip, exact = true, portable = exact, rules = [], edge = false, sampled = false } = device;
  if (skip !== undefined) {
    skipped(name, skip);
    return;
  }
  for (const dtype of ["f32", "f64"] as const) {
    if (!device.dtypes.includes(dtype)) {
      skipped(`${name} ${dtype}`, `${name} does not compute in ${dtype}`);
      continue;
    }
    const tolerances = { ...defaultTolerances(dtype, exact), ...device.tolerances };
    const context = new ContractContext(name, dtype, rules, exact, tolerances, edge, portable, sampled);
    describe(`${name} ${dtype}`, () => {
      beforeAll(async () => context.use(await device.open()));
      afterAll(() => context.backend.close());
      register(context);
    });
  }
}

function skipped(name: string, reason: string): void {
  describe(`${name} (skipped: ${reason})`, () => {
    it("keeps the backend contract", ({ skip }) => skip(reason));
  });
}

/** Why a device does not open here, or undefined if it does. Any failure but DEVICE_UNAVAILABLE is a failure. */
export async function whyUnavailable(open: () => Promise<Backend>): Promise<string | undefined> {
  try {
    (await open()).close();
    return undefined;
  } catch (error) {
    if (error instanceof OptError && error.code === "DEVICE_UNAVAILABLE") return error.message;
    throw error;
  }
}
