/** Each device has each operation with js' numbers, or rejects it by name; the page says which. `OPT_WRITE_DOCS=1` writes it anew. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as core from "@opt/core";
import { init, listDevices } from "@opt/core";
import { useSoftwareVulkan } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { type Coverage, cellsOf, coverageIn, coverageOf, coverageTables, OPERATIONS } from "./coverage";

useSoftwareVulkan();
const PAGE = fileURLToPath(new URL("../../docs/guides/coverage.md", import.meta.url));
const DEVICES = ["js", "wasm", "cpu", "webgpu"] as const;

if (process.env.OPT_WRITE_DOCS) {
  const columns: Record<string, Coverage["cells"]> = {};
  for (const name of DEVICES) columns[name] = (await coverageOf(await init(name), await init("js"))).cells;
  const page = readFileSync(PAGE, "utf8").replace(/(^\|.*\n\n?)+/m, `${coverageTables(columns)}\n\n`);
  writeFileSync(PAGE, page);
}
const known = coverageIn(readFileSync(PAGE, "utf8"));

describe("coverage as the page has it", async () => {
  const listing = await listDevices();
  it.for(DEVICES)("on %s", async (name, { skip }) => {
    const { available, reason } = listing.find((device) => device.name === name)!;
    if (!available) skip(reason);
    const coverage = await coverageOf(await init(name), await init("js"));
    expect(coverage.faults).toEqual([]);
    expect(known[name], "OPT_WRITE_DOCS=1 npm run unit -- e2e/docs/coverage").toEqual(cellsOf(coverage));
  });
});

/** Exports of core that take no tensors, that are inner parts of other operations, or that nothing is computed by. */
const OTHERS = new Set(
  `algorithmOf afterEachRun allclose equal trilIndices triuIndices applyRule applyRuleInPlace arange autocast autocastDType binaryCrossEntropyTerms check checkBetas
  checkBoolean checkValue fusedLerp checkGenerator checkNotNegative checkNotSummary checkOptions checkTensor clipGradNorm clipGradNormEach clipGradValue combine reduceInto scheduleFree
  compile crossEntropyRows defineRule divideGradients dependsOn detectAnomaly empty emptyLike enableGrad enableQ8 enableStochasticRounding everyVariant evict eye fftfreq
  fillAgain full functional fusedAttention fusedBatchNorm fusedGroupNorm fusedLstm gatherSparse grad hessian hostBytes hostIo hvp init isEvicted isRecomputing jacobian jvp keep
  l1 l2 linspace listDevices logAddExp3 lowered manualSeed markReplaced modifiedRules nearest needing noGrad nonFinite norms observed onGradient oneHot ones parameter
  pathSums profile rand randint randn randperm recompute registerBackend registerHostIo resample rfftfreq rowSparse ruleByVariant ruleHashes runsOnce
  show span stepArrays tensor tensorFromBytes tidy traceAllocations variance versionOf viewAsComplex viewAsReal vjp vmap widened withFlatGradient withGradient zeros`.split(
    /\s+/,
  ),
);

it("has every operation of core", () => {
  const operations = Object.values(OPERATIONS).flatMap((group) => Object.keys(group));
  const exported = Object.entries(core).filter(([name, value]) => typeof value === "function" && !/^[A-Z]/.test(name));
  const missing = exported.map(([name]) => name).filter((name) => !OTHERS.has(name) && !operations.includes(name));
  expect(missing).toEqual([]);
});
