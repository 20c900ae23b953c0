/** Modules in a list or under names, called by who holds them. */
import { check, dependsOn, OptError, show } from "@opt/core";
import { isModule, Module } from "../../module/module";

/**
 * Modules in order, for a forward of one's own to go through: "0.weight", "1.weight", ... A plain array property does the same;
 * this one can stand wherever a module can.
 *
 * @throws OptError BAD_ARGUMENT for what is no module
 * @example
 * const layers = new ModuleList([new Linear(4, 4), new Linear(4, 2)]);
 * const y = [...layers].reduce((x, layer) => layer.forward(x), rand([1, 4]));
 */
export class ModuleList<M extends Module = Module> extends Module implements Iterable<M> {
  #modules: readonly M[] = [];

  get #all(): readonly M[] {
    dependsOn(() => this.#modules);
    return this.#modules;
  }

  constructor(modules: Iterable<M> = []) {
    super();
    const isList = typeof modules === "object" && modules !== null && Symbol.iterator in modules;
    check(isList, "BAD_ARGUMENT", "ModuleList", () => `needs a list of modules, got ${show(modules)}.`, "Pass [a, b].");
    this.push(...modules);
  }

  get length(): number {
    return this.#all.length;
  }

  /** The module at a position, which counts from the end if it is negative. */
  at(index: number): M | undefined {
    return this.#all.at(index);
  }

  /** The modules from `start` to before `end`, counted as an array's slice: the same modules, named from 0 on. */
  slice(start?: number, end?: number): ModuleList<M> {
    return new ModuleList(this.#all.slice(start, end));
  }

  /** Adds modules at the end. @throws OptError BAD_ARGUMENT */
  push(...modules: M[]): this {
    for (const module of modules) checkModule("ModuleList", module);
    this.#modules = [...this.#modules, ...modules];
    return this;
  }

  [Symbol.iterator](): IterableIterator<M> {
    return this.#all.values();
  }

  override namedChildren(): [string, Module][] {
    return this.#all.map((module, i) => [String(i), module]);
  }

  forward(): never {
    throw called("ModuleList");
  }
}

/**
 * Modules by name: "price.weight", "kind.weight", ... A plain object or map does the same; this one can stand wherever a module can.
 *
 * @throws OptError BAD_ARGUMENT for what is no module
 * @example
 * const heads = new ModuleDict({ price: new Linear(4, 1), kind: new Linear(4, 3) });
 * const kinds = heads.get("kind").forward(rand([2, 4])); // [2, 3]
 */
export class ModuleDict<M extends Readonly<Record<string, Module>> = Record<string, Module>> extends Module {
  #modules: ReadonlyMap<string, Module> = new Map();

  get #all(): ReadonlyMap<string, Module> {
    dependsOn(() => this.#modules);
    return this.#modules;
  }

  constructor(modules: M = {} as M) {
    super();
    const isRecord = typeof modules === "object" && modules !== null && !Array.isArray(modules);
    check(
      isRecord,
      "BAD_ARGUMENT",
      "ModuleDict",
      () => `needs modules by name, got ${show(modules)}.`,
      "{ a: module }",
    );
    for (const [name, module] of Object.entries(modules)) this.set(name, module);
  }

  /** @throws OptError BAD_ARGUMENT for a name that is not there */
  get<K extends keyof M & string>(name: K): M[K] {
    check(
      this.#all.has(name),
      "BAD_ARGUMENT",
      "ModuleDict",
      () => `there is no module ${show(name)} among ${[...this.#all.keys()].join(", ") || "none"}.`,
      "Check the name, or set it.",
    );
    return this.#all.get(name) as M[K];
  }

  has(name: string): boolean {
    return this.#all.has(name);
  }

  /** Adds a module, or replaces the one of that name. @throws OptError BAD_ARGUMENT */
  set(name: string, module: Module): this {
    check(typeof name === "string", "BAD_ARGUMENT", "ModuleDict", () => `names must be strings, got ${show(name)}.`);
    checkModule("ModuleDict", module);
    this.#modules = new Map([...this.#modules, [name, module]]);
    return this;
  }

  keys(): IterableIterator<string> {
    return this.#all.keys();
  }

  override namedChildren(): [string, Module][] {
    return [...this.#all];
  }

  forward(): never {
    throw called("ModuleDict");
  }
}

function checkModule(where: string, module: unknown): void {
  check(
    isModule(module),
    "BAD_ARGUMENT",
    where,
    () => `needs modules, got ${show(module)}.`,
    "For example new Linear(2, 2).",
  );
}

function called(where: string): OptError {
  return new OptError("UNSUPPORTED", where, "holds modules and has no forward of its own.", "Call the modules in it.");
}
