/** A checkpoint as the object that PyTorch users expect: `{ model, optimizer }`, or the nesting that it had in PyTorch. */

import { sameJson } from "../../format/json/plain";
import type { Json, SourceTensor, TensorSource } from "../../format/source";
import { scalarTensor } from "../../formats/bytes/foreign-tensor";
import { isObject } from "../../formats/bytes/json";
import { STRUCTURE_KEY } from "../../formats/names/renaming";
import { inNumbers, scalarOf } from "../../formats/names/scalars";
import {
  dictOf,
  itemsOf,
  membersOf,
  type PythonTree,
  plainOf,
  renameTensors,
  tensorOf,
  treeFrom,
} from "../../formats/python/tree";
import { ourOption } from "../../formats/torch/names";
import {
  keyOf,
  type OptimizerForm,
  optimizerOf,
  survey,
  type TorchGroup,
  type TorchOptimizer,
} from "../../formats/torch/optimizers";
import { optionsOf, optionTree, treeOf } from "./write-groups";
import { asCounted, isSavedOptimizer, type SavedOptimizer, stateName, withLists } from "./write-states";

export interface TorchObject {
  readonly tree: PythonTree;
  readonly tensors: ReadonlyMap<string, SourceTensor>;
}

/** `numbered` for files that `optimizer.load_state_dict` takes, `named` for what `set_state_dict` takes. */
export async function torchObject(source: TensorSource, form: "numbered" | "named"): Promise<TorchObject> {
  const { [STRUCTURE_KEY]: stored, ...values } = source.values;
  const structure = stored === undefined ? undefined : treeFrom(stored);
  const context = new Context(source, values, form);
  const tree = structure === undefined ? context.canonical() : await context.restructured(structure);
  return { tree, tensors: context.tensors };
}

class Context {
  readonly tensors: Map<string, SourceTensor>;
  readonly #source: TensorSource;
  readonly #form: "numbered" | "named";
  readonly #optimizers: ReadonlyMap<string, SavedOptimizer>;
  readonly #values: ReadonlyMap<string, Json>;
  /** Tensors that the object holds already: as plain numbers, or in lists of an optimizer's state. */
  readonly #placed = new Set<string>();
  readonly #states = new Map<string, Map<string, string>>();
  /** By parameter: the states that are plain numbers. LBFGS counts no steps, and keeps numbers of float64. */
  readonly #numbers = new Map<string, Map<string, PythonTree>>();

  constructor(source: TensorSource, values: { readonly [key: string]: Json }, form: "numbered" | "named") {
    this.#source = source;
    this.#form = form;
    this.tensors = new Map([...source.tensors].map(([name, tensor]) => [name, asCounted(tensor)]));
    for (const { name, follows } of source.tensors.values()) {
      if (follows !== undefined) this.#statesOf(follows).set(stateName(name, follows), name);
    }
    const optimizers = Object.entries(values).filter((entry): entry is [string, Json & SavedOptimizer] =>
      isSavedOptimizer(entry[1]),
    );
    this.#optimizers = new Map(optimizers);
    this.#values = new Map(Object.entries(values).filter(([key]) => !this.#optimizers.has(key)));
    for (const { counters } of this.#optimizers.values()) this.#addCounters(counters);
  }

  /** `{ model, optimizer, ... }`, or the parameters alone where there is nothing else. */
  canonical(): PythonTree {
    const isModels = ({ role, follows }: SourceTensor) => follows === undefined && role !== "state";
    const parameters = [...this.#source.tensors.values()].filter(isModels);
    const model: PythonTree = { dict: parameters.map(({ name }) => [name, { tensor: name }]) };
    const optimizers = [...this.#optimizers];
    if (optimizers.length === 0 && this.#states.size > 0) {
      optimizers.push(["optimizer", { groups: [{ params: [...this.#states.keys()] }], counters: {} }]);
    }
    const { step } = this.#source;
    const plain = [...this.#values].map(([key, value]): [PythonTree, PythonTree] => [key, treeOf(value)]);
    if (step !== undefined && !this.#values.has("step")) plain.push(["step", step]);
    const listed = new Set(optimizers.flatMap(([, { groups }]) => groups.flatMap(({ params }) => params)));
    for (const tensor of this.#source.tensors.values()) {
      const { name, follows = "" } = tensor;
      if (!isModels(tensor) && !listed.has(follows)) plain.push([name, { tensor: name }]);
    }
    if (optimizers.length === 0 && plain.length === 0 && this.#form === "numbered") return model;
    const word = (key: string): string => (key === "optimizer" && this.#form === "named" ? "optim" : key);
    const built = optimizers.map(([key, saved]): [PythonTree, PythonTree] => [
      word(key),
      this.#optimizer(saved, this.#form, undefined, new Map()),
    ]);
    return { dict: [["model", model], ...built, ...plain] };
  }

  /** The nesting that the file had, with what the checkpoint holds now. */
  async restructured(structure: PythonTree): Promise<PythonTree> {
    const found = survey(structure).optimizers.length;
    const left = new Map(this.#values);
    const visit = async (tree: PythonTree, prefix: string): Promise<PythonTree | undefined> => {
      const base = optimizerOf(tree, prefix);
      if (base !== undefined) {
        const key = found === 1 ? "optimizer" : prefix.slice(0, -1);
        const saved = this.#optimizers.get(key);
        return saved === undefined ? undefined : this.#restoredOptimizer(saved, base);
      }
      const tensor = tensorOf(tree);
      if (tensor !== undefined) return this.tensors.has(tensor) ? tree : undefined;
      const items = membersOf(tree);
      if (items === undefined) {
        const name = prefix.slice(0, -1);
        const [now, plain] = [left.get(name), plainOf(tree)];
        left.delete(name);
        // Sets, dtypes and the like are texts among the values: they stay what they are.
        return now === undefined || plain === undefined || sameJson(now, plain) ? tree : treeOf(now);
      }
      const inner: [PythonTree, PythonTree][] = [];
      for (const [key, value] of items) {
        const kept = await visit(value, `${prefix}${keyOf(key)}.`);
        if (kept !== undefined) inner.push([key, kept]);
      }
      if (dictOf(tree) !== undefined) return { ...(tree as { dict: [PythonTree, PythonTree][] }), dict: inner };
      const list = inner.map(([, value]) => value);
      return typeof tree === "object" && tree !== null && "tuple" in tree ? { tuple: list } : { list };
    };
    const tree = (await visit(structure, "")) ?? { dict: [] };
    const members = dictOf(tree);
    if (members === undefined) return tree;
    const placed = new Set(this.#placed);
    renameTensors(tree, (name) => {
      placed.add(name);
      return name;
    });
    for (const name of this.#source.tensors.keys()) if (!placed.has(name)) members.push([name, { tensor: name }]);
    for (const [key, value] of left) members.push([key, treeOf(value)]);
    return tree;
  }

  /** The optimizer under the names that its file had, where its groups are still the same. */
  async #restoredOptimizer(saved: SavedOptimizer, base: TorchOptimizer): Promise<PythonTree> {
    const fits =
      saved.groups.length === base.groups.length &&
      saved.groups.every(({ params }, g) => params.length === base.groups[g]!.params.length);
    const form = base.form === "numbered" ? this.#form : base.form;
    if (!fits) return this.#optimizer(saved, form, undefined, new Map());
    // Steps and rates that were plain numbers stay plain numbers, lists of tensors lists.
    const plain = new Map<string, PythonTree>();
    for (const [g, { params }] of saved.groups.entries()) {
      for (const [i, param] of params.entries()) {
        for (const [name, value] of base.state.get(base.groups[g]!.params[i]!) ?? []) {
          if (tensorOf(value) !== undefined || this.#isOutdated(param, name, value)) continue;
          const held = this.#states.get(param)?.get(name) ?? "";
          const tensor = this.tensors.get(held);
          const now = saved.counters[param]?.[name] ?? (tensor && (await scalarOf(tensor)));
          if (now !== undefined) this.#placed.add(held);
          const kept = renameTensors(value, (inner) => {
            this.#placed.add(inner);
            return this.tensors.has(inner) ? inner : undefined;
          })!;
          const isNew = now !== undefined && !sameJson(now, plainOf(value));
          plain.set(`${param}.${name}`, isNew ? treeOf(now, !Number.isInteger(value)) : kept);
        }
      }
    }
    const groups: TorchGroup[] = [];
    for (const [g, group] of base.groups.entries()) {
      groups.push({ ...group, options: await this.#stillTensors(group.options, saved.groups[g]!) });
    }
    return this.#optimizer(saved, form, { ...base, groups }, plain);
  }

  #isOutdated(param: string, name: string, list: PythonTree): boolean {
    const items = itemsOf(list);
    if (items === undefined) return false;
    const isGone = items.some((item) => !this.tensors.has(tensorOf(item) ?? "") && tensorOf(item) !== undefined);
    const isLonger = this.#states.get(param)?.has(`${name}.${items.length}`) ?? false;
    return isGone || isLonger || (this.#numbers.get(param)?.has(`${name}.0`) ?? false);
  }

  /** A file's options: those that were tensors stay tensors where these hold what the options are now. */
  async #stillTensors(theirs: ReadonlyMap<string, PythonTree>, ours: { readonly [option: string]: Json }) {
    const options = new Map<string, PythonTree>();
    for (const [name, value] of theirs) {
      const read = new Set<string>();
      const number = await inNumbers(value, this.tensors, read);
      const now = ours[ourOption(name)];
      if (now === undefined || read.size === 0 || sameJson(now, plainOf(number))) {
        const kept = renameTensors(value, (inner) => (this.tensors.has(inner) ? inner : undefined));
        if (kept !== undefined) options.set(name, kept);
      } else {
        options.set(name, optionTree(name, now));
        for (const tensor of read) this.#placed.add(tensor);
      }
    }
    return options;
  }

  #optimizer(
    saved: SavedOptimizer,
    form: OptimizerForm,
    base: TorchOptimizer | undefined,
    plain: ReadonlyMap<string, PythonTree>,
  ): PythonTree {
    let count = 0;
    const state: [string | number, [string, PythonTree][], string][] = [];
    const groups: { options: [PythonTree, PythonTree][]; keys: (string | number)[]; params: readonly string[] }[] = [];
    const initialLrs = this.#initialLrs(saved.groups);
    for (const [g, { params, ...options }] of saved.groups.entries()) {
      const from = base?.groups[g];
      const keys = params.map((param, i): string | number => {
        const before = from?.params[i];
        const number = count++;
        const key = form === "numbered" ? (before === undefined ? number : Number(before)) : param;
        const held = this.#states.get(param) ?? new Map<string, string>();
        const states = new Map<string, PythonTree>();
        const numbers = this.#numbers.get(param) ?? new Map<string, PythonTree>();
        const others = [...held.keys()].filter((name) => !this.#placed.has(held.get(name)!));
        for (const name of [...(base?.state.get(before ?? "")?.keys() ?? []), ...others, ...numbers.keys()]) {
          const tensor = held.get(name);
          const own = `${param}.${name}`;
          const known = plain.has(own) ? plain.get(own) : numbers.get(name);
          const value = known !== undefined || tensor === undefined ? known : { tensor };
          if (value !== undefined) states.set(name, value);
        }
        if (states.size > 0) state.push([key, withLists(states), param]);
        return key;
      });
      const written = optionsOf(from ? options : { ...initialLrs[g], ...options }, from?.options);
      // A distributed load into an optimizer with named parameters asks for them; one without takes them.
      const names = base?.form !== form ? params : from?.names && params;
      if (form !== "flat" && names !== undefined) written.unshift(["param_names", { list: [...names] }]);
      groups.push({ options: written, keys, params });
    }
    if (form === "flat") {
      const members = state.flatMap(([key, states]) =>
        states.map(([name, value]): [PythonTree, PythonTree] => [`state.${key}.${name}`, value]),
      );
      for (const { options, params } of groups) {
        for (const param of params) {
          for (const [name, value] of options) members.push([`param_groups.${param}.${plainOf(name)}`, value]);
        }
      }
      return { dict: members };
    }
    return {
      dict: [
        ["state", { dict: state.map(([key, states]) => [key, { dict: states }]) }],
        [
          "param_groups",
          { list: groups.map(({ options, keys }) => ({ dict: [...options, ["params", { list: keys }]] })) },
        ],
      ],
    };
  }

  /** Torch's schedules keep the first lr in each group: ours, where a schedule with the groups' lr was saved, else the group's lr. */
  #initialLrs(groups: SavedOptimizer["groups"]): { readonly [option: string]: Json }[] {
    const lrs = groups.map(({ lr }) => lr ?? null);
    const schedule = [...this.#values.values()].find((value) => isObject(value) && sameJson(value.lr, lrs));
    const base = isObject(schedule) && Array.isArray(schedule.baseLrs) ? schedule.baseLrs : [];
    return lrs.map((lr, g): { readonly [option: string]: Json } => (lr === null ? {} : { initialLr: base[g] ?? lr }));
  }

  #statesOf(param: string): Map<string, string> {
    const known = this.#states.get(param) ?? new Map<string, string>();
    this.#states.set(param, known);
    return known;
  }

  /** Counters that we keep as numbers are tensors of one float32 in PyTorch. */
  #addCounters(counters: SavedOptimizer["counters"]): void {
    for (const [param, numbers] of Object.entries(counters)) {
      if ("n_iter" in numbers) {
        this.#numbers.set(param, new Map(Object.entries(numbers).map(([name, value]) => [name, treeOf(value)])));
        continue;
      }
      for (const [name, value] of Object.entries(numbers)) {
        const states = this.#statesOf(param);
        if (states.has(name)) continue;
        const tensor = `${param}.${name}`;
        this.tensors.set(tensor, scalarTensor(tensor, value, this.#source.path));
        states.set(name, tensor);
      }
    }
  }
}
