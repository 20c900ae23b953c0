/** The optimizer that TensorFlow.js sees. */
import {
  type BaseOptions,
  check,
  checkOptions,
  type Device,
  type GroupOptions,
  type Optimizer,
  type OptimizerClass,
  type OptimizerState,
  tidy as ownTidy,
  parameter,
  show,
} from "@opt/core";
import {
  dispose,
  type NamedTensorMap,
  type Scalar,
  serialization,
  Optimizer as TfBase,
  tidy,
  type Variable,
} from "@tensorflow/tfjs-core";
import { fromConfig, toConfig } from "./config";
import { gradientsOf } from "./gradients";
import { fromNamedTensors, type NamedTensor, toNamedTensors } from "./named-weights";
import { register, registered } from "./registered";
import { TrainedVariables } from "./trained-variables";

const WHERE = "TfOptimizer";

export interface TfOptimizerSettings {
  /** The device of ours that steps: js, wasm or cpu. By default the one that `init` opened last. */
  readonly device?: Device | string;
  /**
   * On TF.js' cpu backend variables are stepped where they lie: an array that `dataSync()` gave changes with the next step. False: each
   * step gives them a new array. Default true.
   */
  readonly inPlace?: boolean;
}

/**
 * An optimizer of ours as a `tf.Optimizer`: for `minimize`, `applyGradients` and `model.compile`, with the numbers that it has elsewhere.
 * Its state lies on a device of ours; variables become its parameters when they first have a gradient.
 *
 * `groups[0]` has its options, which may be changed between steps; a schedule takes the optimizer as it is.
 *
 * @example
 * import "@tensorflow/tfjs-backend-cpu";
 * import { layers, sequential } from "@tensorflow/tfjs-layers";
 * const model = sequential({ layers: [layers.dense({ units: 1, inputShape: [2] })] });
 * model.compile({ optimizer: new TfOptimizer(AdamW, { lr: 0.01 }), loss: "meanSquaredError" });
 */
export class TfOptimizer<Options extends BaseOptions> extends TfBase {
  /** By which TF.js knows the class. */
  static get className(): string {
    return WHERE;
  }

  /** The options of all variables. */
  readonly groups: readonly [Options & GroupOptions];
  readonly #algorithm: string;
  readonly #class: OptimizerClass<Options>;
  readonly #device: Device;
  /** Trains nothing: it checks options. */
  readonly #options: Optimizer<Options>;
  /** Those of the options that were checked. */
  #names: string;
  readonly #trained: TrainedVariables<Options>;
  /** What `getWeights` gave last: `model.save` leaves it to us. */
  #given: readonly NamedTensor[] = [];

  /**
   * @param optimizer its class: AdamW, NAdam, ...
   * @param options as the class takes them
   * @throws OptError BAD_ARGUMENT as the class does; UNKNOWN_DEVICE; NOT_SYNC on a device that cannot be read without waiting
   */
  constructor(
    optimizer: OptimizerClass<Options>,
    options: Partial<Options> & GroupOptions = {},
    settings: TfOptimizerSettings = {},
  ) {
    super();
    this.#algorithm = register(WHERE, optimizer);
    checkOptions(WHERE, settings, { device: ["string", "object"], inPlace: "boolean" });
    const { inPlace = true } = settings;
    const nothing = parameter([[0]], settings.device === undefined ? {} : { device: settings.device });
    try {
      nothing.dataSync();
      this.#options = new optimizer([nothing], options);
    } finally {
      nothing.dispose();
    }
    this.#class = optimizer;
    this.#device = nothing.device;
    this.groups = [chosen(this.#options)];
    this.#names = namesOf(this.groups[0]);
    this.#trained = new TrainedVariables(WHERE, { optimizer, device: nothing.device, inPlace });
  }

  /** The learning rate, `groups[0].lr`. */
  get learningRate(): number {
    return this.groups[0].lr;
  }

  set learningRate(value: number) {
    this.groups[0].lr = value;
  }

  /** As TF.js'; a step that throws leaves no tensors behind. */
  override minimize(f: () => Scalar, returnCost = false, varList?: Variable[]): Scalar | null {
    const cost = tidy(() => super.minimize(f, true, varList)!);
    if (returnCost) return cost;
    cost.dispose();
    return null;
  }

  /**
   * One step of the variables that have a gradient; the others are left alone and do not count it.
   *
   * @throws OptError DISPOSED for names without a variable and for gradients that were disposed; BAD_DTYPE for variables that are not
   * float32;
   * BAD_SHAPE, DUPLICATE, NOT_SYNC; BAD_STATE if loaded state is of others; BAD_ARGUMENT if an option was set out of range. Nothing has changed then.
   */
  applyGradients(variableGradients: NamedTensorMap | NamedTensor[]): void {
    this.#checkNames();
    this.#trained.step(gradientsOf(WHERE, variableGradients), this.groups[0]);
    this.incrementIterations();
  }

  /** Frees the state. The optimizer can go on, from a fresh state; variables are left alone. */
  override dispose(): void {
    this.#trained.dispose();
    this.#giveAnew([]);
    this.iterations_ = 0;
  }

  /** Options, and state by variable under PyTorch's keys, for `@opt/checkpoint`. Tensors are the live ones: save or clone them before the next step. */
  stateDict(): OptimizerState {
    const { names, state } = this.#trained.state();
    const { regularizer = null, ...options } = this.groups[0];
    const penalty = typeof regularizer === "function" ? {} : { regularizer };
    const set = Object.fromEntries(
      Object.entries(options).filter(([, value]) => value !== undefined),
    ) as typeof options;
    return { groups: [{ ...set, ...penalty, params: [...names] }], state: { ...state } };
  }

  /**
   * Takes over options and state, which is copied: by the variables' names, or by their order where no name is known. State of variables
   * that have not been stepped waits for their first step.
   *
   * @throws OptError BAD_STATE if it does not fit. Nothing has changed then.
   */
  loadStateDict(saved: OptimizerState): void {
    const { groups, state } = Object(saved) as Partial<OptimizerState>;
    const isState = Array.isArray(groups) && Array.isArray(groups[0]?.params) && typeof state === "object";
    check(
      isState && state !== null,
      "BAD_STATE",
      WHERE,
      () => `state must be { groups, state }, got ${show(saved)}.`,
      "Pass what stateDict() returned.",
    );
    check(
      groups.length === 1,
      "BAD_STATE",
      WHERE,
      () => `the state must have one group, got ${groups.length}.`,
      "A TfOptimizer has the same options for all variables.",
    );
    Object.assign(this.#options.groups[0]!, this.groups[0]);
    this.#options.loadStateDict({ groups: [{ ...groups[0]!, params: ["0"] }], state: {} });
    const options = chosen(this.#options);
    this.#trained.load(groups[0]!.params, state, options);
    Object.assign(this.groups[0], options);
    this.iterations_ = Math.max(0, ...Object.values(state).map(({ step }) => step));
  }

  /** The count of steps and the state in TF.js' own format. The tensors live until the next call, or until `dispose`. */
  override async getWeights(): Promise<NamedTensor[]> {
    return this.#giveAnew(ownTidy(() => toNamedTensors(this.iterations, this.#trained.state().state)));
  }

  /** @throws OptError BAD_STATE if the weights are another optimizer's. Nothing has changed then. */
  override async setWeights(weightValues: NamedTensor[]): Promise<void> {
    const { iterations, state } = await fromNamedTensors(WHERE, weightValues);
    try {
      this.#trained.load(Object.keys(state), state, this.groups[0]);
    } finally {
      for (const value of Object.values(state).flatMap((entry) => Object.values(entry))) {
        if (typeof value !== "number") value.dispose();
      }
    }
    this.iterations_ = iterations;
  }

  /** The optimizer's name and options, as TF.js saves them beside a model. */
  getConfig(): serialization.ConfigDict {
    return { optimizer: this.#algorithm, options: toConfig(this.groups[0]) };
  }

  /** @throws OptError BAD_STATE for an optimizer that is not registered */
  static override fromConfig<T extends serialization.Serializable>(
    cls: serialization.SerializableConstructor<T>,
    config: serialization.ConfigDict,
  ): T {
    const { optimizer, options } = config;
    return new cls(registered(WHERE, optimizer), fromConfig(Object(options)));
  }

  /** Names that were set since are options of the class, and those that were left out have its defaults. */
  #checkNames(): void {
    const [options] = this.groups;
    if (namesOf(options) === this.#names) return;
    const nothing = parameter([[0]], { device: this.#device });
    try {
      Object.assign(options, chosen(new this.#class([nothing], options)));
    } finally {
      nothing.dispose();
    }
    this.#names = namesOf(options);
  }

  #giveAnew(weights: NamedTensor[]): NamedTensor[] {
    dispose(this.#given.map(({ tensor }) => tensor));
    this.#given = weights;
    return weights;
  }
}

function chosen<Options extends BaseOptions>({ groups }: Optimizer<Options>): Options & GroupOptions {
  const { params: _, names: __, ...options } = groups[0]!;
  return options as unknown as Options & GroupOptions;
}

const namesOf = (options: object) => Object.keys(options).join();

serialization.registerClass(TfOptimizer);
