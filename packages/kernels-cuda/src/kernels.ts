/** Kernels by name: from the fatbins that the build made, or compiled here for this very GPU. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { OptError } from "@opt/core";
import { type ComputeDType, type Program, type Rule, type Spec, specKey } from "@opt/core/backend";
import type { Compiler } from "./compiler";
import { STATUS } from "./driver";
import { type RuleForm, ruleKernelName, writeCodebooks, writeMap, writeRule } from "./generate/write-kernels";
import type { Gpu } from "./gpu";

export class Kernels {
  readonly #modules = new Map<string, number>();
  readonly #entries = new Map<string, number>();
  #compiler: Compiler | undefined;

  /**
   * Loads the rules at once, so that a driver which cannot says so now. `findCompiler` is asked when a kernel needs it.
   *
   * @throws OptError DEVICE_UNAVAILABLE if the build made no kernels, or the driver is too old for them
   */
  constructor(
    private readonly gpu: Gpu,
    private readonly folder: string,
    private readonly findCompiler: () => Compiler | undefined,
  ) {
    if (!existsSync(join(folder, "rules.fatbin"))) {
      throw gpu.unavailable(
        `no kernels were built into ${folder}.`,
        "Build them where nvcc is (npx nx native native-cuda).",
      );
    }
    const { cuda } = readToolkit(folder);
    const needed = Math.floor(cuda) * 1000;
    const built = `the kernels were built by CUDA ${cuda.toFixed(1)}`;
    const serves = `the driver serves CUDA ${Math.floor(gpu.driverVersion / 1000)}.${(gpu.driverVersion % 1000) / 10}`;
    if (gpu.driverVersion < needed) {
      throw gpu.unavailable(
        `${built}, and ${serves}.`,
        `Update the driver to one for CUDA ${needed / 1000}.0 or newer.`,
      );
    }
    try {
      this.#built("rules");
    } catch (error) {
      if ((error as OptError).code !== "DEVICE_ERROR") throw error;
      throw gpu.unavailable(`${built}, and ${serves}: ${(error as OptError).message}`);
    }
  }

  /** A kernel of a file of native/cuda/kernels. */
  named(file: string, name: string): number {
    let entry = this.#entries.get(name);
    if (entry === undefined) {
      entry = this.#find(this.#built(file), name);
      if (entry === undefined)
        throw this.#unsupported(`${file}.fatbin has no kernel ${name}.`, "Install packages of one version.");
      this.#entries.set(name, entry);
    }
    return entry;
  }

  rule(rule: Rule, form: RuleForm): number {
    const name = ruleKernelName(rule, form);
    return this.#generated("rules", name, `the rule "${rule.name}"`, () =>
      form === "packed" ? `${writeCodebooks()}\n${writeRule(rule, form)}` : writeRule(rule, form),
    );
  }

  map(spec: Spec<"map">): number {
    const name = mapKernelName(spec);
    return this.#generated("maps", name, `this map of ${opsOf(spec.program)}`, () =>
      writeMap(spec.program, spec.dtype as ComputeDType, name),
    );
  }

  close(): void {
    for (const module of this.#modules.values()) this.gpu.driver.cuModuleUnload(module);
    this.#modules.clear();
    this.#entries.clear();
  }

  #generated(file: string, name: string, what: string, write: () => string): number {
    let entry = this.#entries.get(name) ?? this.#find(this.#built(file), name);
    if (entry === undefined) {
      this.#compiler ??= this.findCompiler();
      if (this.#compiler === undefined) {
        const advice =
          "Install libnvrtc (OPT_CUDA_LIBRARIES names its folder), or move these tensors to another device.";
        throw this.#unsupported(`${what} was not compiled ahead, and NVRTC is not here to compile it.`, advice);
      }
      const source = `${readFileSync(join(this.folder, "elements.cuh"), "utf8").replace("#pragma once", "")}\n${write()}\n`;
      entry = this.#find(this.#load(name, this.#compiler.compile(source, this.gpu.architecture)), name)!;
    }
    this.#entries.set(name, entry);
    return entry;
  }

  #built(file: string): number | undefined {
    const known = this.#modules.get(file);
    const path = join(this.folder, `${file}.fatbin`);
    if (known !== undefined || !existsSync(path)) return known;
    return this.#load(file, readFileSync(path));
  }

  #load(key: string, image: Uint8Array): number {
    this.gpu.use();
    const module = this.gpu.get((out) => this.gpu.driver.cuModuleLoadData(out, image), `loading the kernels ${key}`);
    this.#modules.set(key, module);
    return module;
  }

  #find(module: number | undefined, name: string): number | undefined {
    if (module === undefined) return undefined;
    const out = new BigUint64Array(1);
    const status = this.gpu.driver.cuModuleGetFunction(out, module, name);
    if (status === STATUS.notFound) return undefined;
    this.gpu.check(status, `finding the kernel ${name}`);
    return Number(out[0]);
  }

  #unsupported(problem: string, advice: string): OptError {
    return new OptError("UNSUPPORTED", this.gpu.where, problem, advice);
  }
}

/** What made the kernels: it says which drivers take them, those of its major version or newer. */
function readToolkit(folder: string): { cuda: number } {
  const file = join(folder, "toolkit.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { cuda: 0 };
}

/** What it computes, as core hashes it. */
export function mapKernelName(spec: Spec<"map">): string {
  return specKey(spec).replaceAll(" ", "_");
}

function opsOf({ nodes }: Program): string {
  return [...new Set(nodes.map(({ op }) => op))].filter((op) => op !== "buffer" && op !== "constant").join(", ");
}
