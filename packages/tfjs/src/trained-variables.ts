/** The variables that are stepped, as parameters of an optimizer of ours: they come when they first have a gradient, and go when they are disposed. */
import {
  type BaseOptions,
  type Device,
  type GroupOptions,
  type Optimizer,
  type OptimizerClass,
  parameter,
  stepArrays,
  type Tensor,
  tidy,
} from "@opt/core";
import { engine, type Variable } from "@tensorflow/tfjs-core";
import { LoadedState, type StateByName } from "./loaded-state";
import { VariableArray } from "./variable-array";

/** A variable and its parameter, which steps in the variable's array. */
interface Member {
  readonly values: VariableArray;
  readonly param: Tensor;
}

/** How steps are made. */
export interface StepSettings<Options extends BaseOptions> {
  readonly optimizer: OptimizerClass<Options>;
  readonly device: Device;
  readonly inPlace: boolean;
}

export class TrainedVariables<Options extends BaseOptions> {
  private members: readonly Member[] = [];
  private optimizer: Optimizer<Options> | null = null;
  #loaded = LoadedState.nothing();
  /** All parameters hold what is in their arrays. */
  #areKept = false;

  constructor(
    private readonly where: string,
    private readonly settings: StepSettings<Options>,
  ) {}

  /**
   * One step by the gradients of some variables.
   *
   * @param options of this step
   * @throws OptError BAD_STATE if loaded state does not fit; as the optimizer's class and `stepArrays` do. Nothing has changed then.
   */
  step(gradients: ReadonlyMap<Variable, Float32Array>, options: Options & GroupOptions): void {
    this.#follow([...gradients.keys()], options);
    const { optimizer, members } = this;
    if (optimizer === null) return;
    Object.assign(optimizer.groups[0]!, options);
    const stepped = members.filter(({ values }) => gradients.has(values.variable));
    for (const { values } of stepped) if (values.bringIn()) this.#areKept = false;
    stepArrays(
      optimizer,
      members.map(({ values }) => values.array),
      members.map(({ values }) => gradients.get(values.variable) ?? null),
      { unchanged: this.#areKept },
    );
    this.#areKept = true;
    for (const { values } of stepped) values.takeOut();
  }

  /** State by variable: of those that were stepped, and what was loaded for others. Tensors are the live ones. */
  state(): { readonly names: readonly string[]; readonly state: StateByName } {
    const names = [...this.members.map(({ values }) => values.variable.name), ...this.#loaded.waiting];
    return { names, state: { ...this.#loaded.state, ...this.optimizer?.stateDict().state } };
  }

  /** Takes over state in place of what there is. @throws OptError BAD_STATE; nothing has changed then */
  load(names: readonly string[], state: StateByName, options: Options & GroupOptions): void {
    const loaded = LoadedState.of(names, state);
    const former = this.#loaded;
    try {
      if (this.members.length > 0) this.#become(this.#alive(), {}, loaded, options);
      this.#loaded = loaded;
    } catch (error) {
      loaded.dispose();
      throw error;
    }
    former.dispose();
  }

  dispose(): void {
    this.optimizer?.dispose();
    for (const { param } of this.members) param.dispose();
    this.#loaded.dispose();
    this.optimizer = null;
    this.members = [];
  }

  /** Those whose variables were not disposed. */
  #alive(): readonly Member[] {
    const { registeredVariables } = engine();
    return this.members.filter(({ values: { variable } }) => registeredVariables[variable.name] === variable);
  }

  /** Adds variables that are new, and lets go of those that were disposed. */
  #follow(variables: readonly Variable[], options: Options & GroupOptions): void {
    const alive = this.#alive();
    const known = new Set(alive.map(({ values }) => values.variable));
    const added = variables.filter((variable) => !known.has(variable));
    if (added.length === 0 && alive.length === this.members.length) return;
    const { device, inPlace } = this.settings;
    const joined = added.map((variable): Member => {
      const values = new VariableArray(variable, inPlace);
      return { values, param: parameter(values.array, { shape: variable.shape, device }) };
    });
    const names = new Set(alive.map(({ values }) => values.variable.name));
    try {
      tidy(() => {
        const kept = Object.entries(this.optimizer?.stateDict().state ?? {}).filter(([name]) => names.has(name));
        this.#become([...alive, ...joined], Object.fromEntries(kept), this.#loaded, options);
      });
    } catch (error) {
      for (const { param } of joined) param.dispose();
      throw error;
    }
  }

  /** An optimizer of other members, with the state that some had and what was loaded for the others. */
  #become(members: readonly Member[], state: StateByName, loaded: LoadedState, options: Options & GroupOptions): void {
    const { where, settings } = this;
    const names = members.map(({ values }) => values.variable.name);
    const match = loaded.matched(
      where,
      names.filter((name) => state[name] === undefined),
    );
    const known = [...match].flatMap(([name, saved]) => (loaded.state[saved] ? [[name, loaded.state[saved]]] : []));
    let optimizer: Optimizer<Options> | null = null;
    if (members.length > 0) {
      optimizer = new settings.optimizer(members.map(({ values, param }) => [values.variable.name, param] as const));
      Object.assign(optimizer.groups[0]!, options);
      optimizer.step(); // without gradients: checks the options
      optimizer.loadStateDict({ groups: [{ params: names }], state: { ...state, ...Object.fromEntries(known) } });
    }
    loaded.taken(match);
    this.optimizer?.dispose();
    for (const { param } of this.members.filter((member) => !members.includes(member))) param.dispose();
    this.members = members;
    this.optimizer = optimizer;
    this.#areKept = false;
  }
}
