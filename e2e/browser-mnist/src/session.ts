/** A model that trains by `fit`, on the default device. Its file has all of it. */
import { type CheckpointContents, checkpointBlob, loadCheckpoint, saveCheckpoint } from "@opt/checkpoint";
import { type Compiled, compile, Generator, noGrad, type Tensor, tensor, tidy } from "@opt/core";
import { DataLoader, TensorDataset } from "@opt/data";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { accuracy, type Callback, evaluate, type FitState, fit } from "@opt/train";
import type { ExposedRun } from "@opt/train/worker";
import { type Digits, PIXELS } from "./digits";
import { isOptimizerName, OPTIMIZERS, type OptimizerName } from "./optimizers";
import type { Begun } from "./requests";
import { BATCH, type Measured, type Settings } from "./run";

const HIDDEN = 128;
const TEST_BATCH = 1000;
const EPOCHS = 10_000;
/** Where the browser keeps runs among the page's own files. */
const FOLDER = "digits";

type Batch = [images: Tensor, labels: Tensor];

/** How a run is told about, and stopped. */
type RunPort = Pick<ExposedRun, "signal" | "report">;

export class Session {
  readonly #model: Sequential;
  readonly #optimizer;
  readonly #logits: Compiled<[images: Tensor], Tensor>;
  readonly #data: DataLoader<Batch, Batch>;
  readonly #test: ReturnType<typeof datasetOf>;
  readonly #validation: DataLoader<Batch, Batch>;
  readonly #measuring = {
    metrics: [accuracy()],
    forward: ([images, target]: Batch) => {
      const output = this.#model.forward(images.div(255));
      return { loss: crossEntropy(output, target), output, target };
    },
  };
  #measured: Measured[] = [];
  #state: FitState | undefined;
  /** What the next steps go on from. */
  #saved: Blob | string | undefined;

  private constructor(
    train: Digits,
    test: Digits,
    readonly settings: Settings,
  ) {
    const generator = new Generator(1);
    this.#model = new Sequential(
      new Linear(PIXELS, HIDDEN, { generator }),
      new ReLU(),
      new Linear(HIDDEN, 10, { generator }),
    );
    this.#optimizer = OPTIMIZERS[settings.optimizer as OptimizerName].make(this.#model.namedParameters(), settings.lr);
    this.#logits = compile((images) => noGrad(() => this.#model.forward(images)));
    this.#data = new DataLoader(datasetOf(train), { batchSize: BATCH, shuffle: true, dropLast: true, generator });
    this.#test = datasetOf(test);
    this.#validation = new DataLoader(this.#test, { batchSize: TEST_BATCH });
  }

  /** A run from first weights. */
  static async begin(train: Digits, test: Digits, settings: Settings): Promise<[Session, Begun]> {
    const session = new Session(train, test, settings);
    return [session, await session.#load()];
  }

  /** Goes on with a run of a file, or with the one that the browser keeps. @throws an error that says in words what is wrong with it */
  static async open(train: Digits, test: Digits, from: Blob | "kept", device: string): Promise<[Session, Begun]> {
    const place = from === "kept" ? FOLDER : from;
    const { values } = await loadCheckpoint(place, { as: "plain" });
    const { settings, measured } = values as unknown as { settings?: Settings; measured: Measured[] };
    if (settings === undefined) throw new Error("This checkpoint was not written by this page.");
    if (!isOptimizerName(settings.optimizer))
      throw new Error(`This page does not know the file's optimizer, ${settings.optimizer}.`);
    const session = new Session(train, test, { ...settings, device });
    session.#saved = place;
    session.#measured = measured;
    return [session, await session.#load()];
  }

  /** A run that is stopped before its first step only loads. */
  async #load(): Promise<Begun> {
    try {
      const { losses } = await this.#fit(AbortSignal.abort(), []);
      return { settings: this.settings, losses, measured: this.#measured };
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  /** Trains until it is stopped. Returns all measurements on the test digits. */
  async train({ signal, report }: RunPort): Promise<readonly Measured[]> {
    const measure: Callback = {
      onStepEnd({ history }) {
        if (Number.isFinite(history.losses.at(-1) ?? 0)) return;
        throw new Error(
          "The loss is not a number any more: the learning rate is too high. Begin a new run with a smaller one.",
        );
      },
      onEvaluate: ({ step, logs }) => this.#measured.push({ step, accuracy: logs.val_accuracy! }),
    };
    const { losses } = await this.#fit(signal, [measure, report()]);
    if (losses.length > (this.#measured.at(-1)?.step ?? 0)) {
      const { accuracy: share } = await evaluate(this.#model, {
        ...this.#measuring,
        data: this.#validation as Iterable<Batch>,
      });
      this.#measured.push({ step: losses.length, accuracy: share! });
    }
    this.#saved = await this.file();
    return this.#measured;
  }

  #fit(signal: AbortSignal, callbacks: readonly Callback[]) {
    const state: Callback = {
      onTrainBegin: (begun) => {
        this.#state = begun;
      },
    };
    return fit(this.#model, {
      ...this.#measuring,
      data: this.#data as Iterable<Batch>,
      validation: this.#validation as Iterable<Batch>,
      optimizer: this.#optimizer,
      epochs: EPOCHS,
      callbacks: [state, ...callbacks],
      resume: this.#saved ?? false,
      signal,
    });
  }

  /** Weights, optimizer state, the order of the images, the curves. */
  async #contents(): Promise<CheckpointContents> {
    const contents = await this.#state!.contents();
    const { settings } = this;
    return {
      ...contents,
      values: { ...contents.values, settings: { ...settings }, measured: [...this.#measured] } as never,
    };
  }

  /** One safetensors file. */
  async file(): Promise<Blob> {
    return checkpointBlob(await this.#contents());
  }

  /** Keeps the run where it outlives the page, in the place of the one before. */
  async keep(): Promise<void> {
    // Numbered by the time: what was kept last is the newest, also where it has fewer steps.
    await saveCheckpoint(FOLDER, { ...(await this.#contents()), step: Date.now() }, { keep: 1 });
  }

  /** The names that the model gives to test digits. */
  names(positions: Int32Array): Promise<ArrayLike<number>> {
    return taken(
      tidy(() => {
        const [images] = this.#test.batch(positions) as Batch;
        return this.#logits(images.div(255)).argmax(-1);
      }),
    );
  }

  /** The probability of each name for one image, in [0, 1]. */
  probabilities(image: Float32Array): Promise<ArrayLike<number>> {
    return taken(tidy(() => this.#logits(tensor(image, { shape: [1, PIXELS] })).softmax()));
  }

  dispose(): void {
    this.#logits.dispose();
    this.#optimizer.dispose();
    for (const parameter of this.#model.parameters()) parameter.dispose();
  }
}

const datasetOf = ({ count, pixels, labels }: Digits) =>
  new TensorDataset({ data: pixels, shape: [count, PIXELS] }, { data: labels, shape: [count] });

async function taken(result: Tensor): Promise<ArrayLike<number>> {
  try {
    return await result.data();
  } finally {
    result.dispose();
  }
}
