/** What holds for every function that loads data, trains, or reads and runs models, whatever it does: a row for each export. */
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { memoryFileSystem } from "@opt/checkpoint";
import { type Device, defaultGenerator, Generator, init, type Tensor, Tensor as TensorClass, tensor } from "@opt/core";
import * as data from "@opt/data";
import { Module } from "@opt/nn";
import * as train from "@opt/train";
import { afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import * as models from "./index";

// biome-ignore lint/suspicious/noExplicitAny: any options
type Any = any;

const CONFIG = {
  ...{
    model_type: "gpt2",
    vocab_size: 5,
    n_positions: 6,
    n_embd: 4,
    n_layer: 1,
    n_head: 2,
    tie_word_embeddings: false,
  },
};
const TOKENIZER = {
  ...{ encode: (text: string) => [...text].map(Number), decode: (tokens: readonly number[]) => tokens.join("") },
  ...{
    ends: [0, 1, 2, 3, 4],
    applyChatTemplate: (turns: readonly models.Message[]) => turns.map(({ content }) => content).join(""),
  },
};
const TARGETS = { targets: ["c_attn"] };
const TALK = [
  { role: "user", content: "12" },
  { role: "assistant", content: "34" },
];
const IMAGES = [{ data: Uint8Array.of(1, 2, 3, 4), width: 1, height: 1 }];

/** What a row is called with. */
interface Given {
  readonly model: models.LanguageModel;
  readonly device: Device;
  readonly fileSystem: ReturnType<typeof memoryFileSystem>;
  /** Options of the function, which a test may add to. */
  options(own?: object): Any;
  /** A function of the program, which a test may have fail. */
  yours<F>(f: F): F;
  /** Called when all is over. */
  readonly ends: (() => void)[];
}

const tokensOn = (device: Device, seed = 0) =>
  tensor(
    [1, 3, 0, 4].map((each) => (each + seed) % 5),
    { shape: [2, 2], dtype: "i32", device },
  );
const listed = async (given: AsyncIterable<unknown>) => {
  const all: unknown[] = [];
  for await (const each of given) all.push(plain(each));
  return all;
};
const batches = ({ device, ends }: Given) => {
  const made = [[tokensOn(device), tokensOn(device, 1)]];
  ends.push(() => dispose(made));
  return made;
};
const lossOf = ({ yours, model }: Given) =>
  yours((batch: Tensor[]) => {
    const output = model.forward(batch[0]!);
    return { loss: models.causalLoss(output, batch[1]!), output, target: batch[1]! };
  });
const adamW = ({ model, ends }: Given) => {
  const optimizer = new AdamW(model.namedParameters(), { lr: 0.1 });
  ends.push(() => optimizer.dispose());
  return optimizer;
};
/** Trains with a callback. */
const fitted = (callback: (given: Given) => train.Callback) => async (given: Given) => {
  const [own, optimizer] = [callback(given), adamW(given)];
  const forward = lossOf({ ...given, yours: (f) => f });
  const run = { data: batches(given), forward, optimizer, epochs: 2, validation: batches(given) };
  return train.fit(given.model, { ...run, compile: false, callbacks: [own] } as Any);
};
const files = ({ fileSystem }: Given) => ({ fileSystem });
const adapted = ({ model }: Given) => models.lora(model, { ...TARGETS, generator: new Generator(1) });

const ROWS: Readonly<Record<string, (given: Given) => unknown>> = {
  Alphabet: () => new data.Alphabet("ab").encode("ba"),
  collate: () => data.collate([{ x: 1 }, { x: 2 }]),
  DataLoader: ({ options, yours }) => [
    ...new data.DataLoader(
      { length: 3, get: yours((i: number) => i) },
      options({ collate: yours((list: number[]) => list) }),
    ),
  ],
  "DataLoader of samples that come later": ({ options, yours }) =>
    listed(
      new data.DataLoader({ length: 5, get: yours(async (i: number) => i) }, options({ generator: new Generator(1) })),
    ),
  fromCsv: ({ options }) => data.fromCsv("a,b\n1,x\n", options()),
  fromImages: ({ options }) => data.fromImages(IMAGES, options()),
  parseIdx: () => data.parseIdx(Uint8Array.of(0, 0, 8, 1, 0, 0, 0, 1, 7)).shape,
  randomSplit: () => data.randomSplit([1, 2, 3], [0.5, 0.5], new Generator(1)).map(({ indices }) => indices),
  Subset: () => Array.from(new data.DataLoader(new data.Subset([1, 2], [1])), plain),
  TensorDataset: () => new data.TensorDataset({ data: Int32Array.of(1, 2), shape: [2] }).get(1),
  Windows: ({ options }) => new data.Windows(Int32Array.of(1, 2, 3), options({ length: 1 })).get(1),

  causalLoss: ({ model, device }) => {
    const [tokens, logits] = [tokensOn(device), tensor(new Float32Array(20), { shape: [2, 2, 5], device })];
    const result = models.causalLoss(logits, tokens);
    dispose([tokens, logits, model.training]);
    return result;
  },
  chatDataset: ({ options, yours }) =>
    models
      .chatDataset({ ...TOKENIZER, encode: yours(TOKENIZER.encode) }, [TALK, TALK], options({ length: 3 }))
      .batch([0, 1]),
  textDataset: ({ options, yours }) =>
    models
      .textDataset({ ...TOKENIZER, encode: yours(TOKENIZER.encode) }, ["12", "340"], options({ length: 2 }))
      .batch([1, 0]),
  "fitsIn of a step": (given) =>
    models.fitsIn(given.model, given.options({ batch: 1, length: 2, optimizer: adamW(given) })),
  "fitsIn of a generation": ({ model, options }) => models.fitsIn(model, options({ batch: 2, length: 6 })),
  generate: ({ model, options, yours }) =>
    listed(models.generate(model, { ...TOKENIZER, decode: yours(TOKENIZER.decode) }, "1", options({ maxTokens: 3 }))),
  "generate by draws": ({ model, options }) =>
    listed(models.generate(model, TOKENIZER, TALK, options({ temperature: 2, compile: false }))),
  generateTokens: ({ model, options }) =>
    listed(models.generateTokens(model, [[1], [2, 3]], options({ maxTokens: 2 }))),
  "generateTokens, left early": async ({ model, options }) => {
    for await (const step of models.generateTokens(model, [[1]], options())) return step;
  },
  KeyValueCache: ({ model, device, options, ends }) => {
    const cache = new models.KeyValueCache(model, options({ capacity: 3, batch: 2 }));
    const tokens = tokensOn(device);
    ends.push(
      () => cache.dispose(),
      () => tokens.dispose(),
    );
    return model.forward(tokens, { cache });
  },
  languageModel: ({ device, options }) =>
    models.languageModel(CONFIG, options({ device, generator: new Generator(1) })),
  readConfig: () => models.readConfig(CONFIG),
  savePretrained: (given) => models.savePretrained(given.model, "a", given.options(files(given))),
  fromPretrained: async (given) => {
    await models.savePretrained(given.model, "a", files(given));
    const { model } = await models.fromPretrained(
      "a",
      given.options({ ...files(given), device: given.device, progress: given.yours(() => {}) }),
    );
    return model;
  },
  saveAdapter: (given) => {
    adapted(given);
    return models.saveAdapter(
      given.model,
      "b",
      given.options({ ...files(given), rename: given.yours((name: string) => name) }),
    );
  },
  loadAdapter: async (given) => {
    const { fileSystem, device, model, options, yours } = given;
    const other = { ...given, model: models.languageModel(CONFIG, { device, generator: new Generator(1) }) };
    await models.saveAdapter(adapted(other), "b", { fileSystem });
    dispose(other.model);
    await models.loadAdapter(model, "b", options({ fileSystem, rename: yours((name: string) => name) }));
  },
  lora: ({ model, options }) =>
    void models.lora(model, options({ ...TARGETS, generator: new Generator(1), dora: true })),
  merge: (given) => void models.merge(adapted(given)),
  unmerge: (given) => void models.unmerge(models.merge(adapted(given))),
  quantize: async ({ model, options }) => void (await models.quantize(model, "nf4", options())),

  fit: (given) => {
    const { model, options, yours } = given;
    const names = [
      "onTrainBegin",
      "onEpochBegin",
      "onStepBegin",
      "onStepEnd",
      "onEvaluate",
      "onEpochEnd",
      "onTrainEnd",
    ];
    const callback = Object.fromEntries(names.map((name) => [name, yours(() => {})]));
    const made = batches(given)[0]!;
    const loader = new data.DataLoader([made], { collate: yours(([batch]: Tensor[][]) => batch!) });
    const run = { data: loader, forward: lossOf(given), optimizer: adamW(given), callbacks: [callback] };
    const more = { validation: yours(() => [made]), metrics: [train.perplexity()], compile: false };
    return train.fit(model, options({ ...run, ...more, epochs: 1 }));
  },
  checkpoints: fitted((given) => train.checkpoints("c", given.options(files(given)))),
  csv: fitted((given) => train.csv("d.csv", given.options(files(given)))),
  earlyStopping: fitted(({ options }) => train.earlyStopping(options())),
  logger: fitted(({ options, yours }) =>
    train.logger(
      yours(() => {}),
      options(),
    ),
  ),
  progress: fitted(({ options, yours }) => train.progress(options({ stream: { write: yours(() => {}) } }))),
  tensorBoard: fitted((given) => train.tensorBoard("e", given.options(files(given)))),
  SummaryWriter: async (given) => {
    const writer = new train.SummaryWriter("f", given.options(files(given)));
    writer.scalar("a", 1, 1);
    await writer.close();
  },
  evaluate: (given) =>
    train.evaluate(
      given.model,
      given.options({ data: batches(given), forward: lossOf(given), metrics: [train.accuracy()] }),
    ),
  "evaluate, eagerly": (given) =>
    train.evaluate(
      given.model,
      given.options({ data: given.yours(() => batches(given)), forward: lossOf(given), compile: false }),
    ),
  predict: (given) =>
    train.predict(
      given.model,
      given.yours(() => batches(given)),
      given.options(),
    ),
  findLearningRate: (given) =>
    train.findLearningRate(
      given.model,
      given.options({
        data: batches(given),
        forward: lossOf(given),
        optimizer: adamW(given),
        steps: 3,
        ...{ compile: false },
      }),
    ),
  plot: ({ options }) => train.plot({ loss: [3, 2, 1] }, options()),
  summary: ({ model, device, ends }) => {
    const tokens = tokensOn(device);
    ends.push(() => tokens.dispose());
    return train.summary(model, tokens);
  },
  sumMetric: () => train.sumMetric({ name: "a", size: 1, sums: (output) => output, value: ([sum]) => sum! }).state(),
  ...Object.fromEntries(
    Object.entries({
      ...{ accuracy: train.accuracy, f1: train.f1 },
      ...{ meanAbsoluteError: train.meanAbsoluteError, perplexity: train.perplexity },
    }).map(([name, make]) => [
      name,
      async ({ device, options }: Given) => {
        const metric = (make as Any)(
          ...(name === "accuracy" ? [options()] : name === "f1" ? [options({ classes: 5 })] : []),
        );
        const output = tensor([0, 1, 2, 3], { shape: [2, 2], device });
        const given = [output, name === "meanAbsoluteError" ? output : tensor([0, 1], { dtype: "i32", device })];
        await metric.update(...given);
        dispose(given);
        return metric.value();
      },
    ]),
  ),
};
/** What they are called for. */
const CHANGES =
  /^(lora|merge|unmerge|quantize|loadAdapter|saveAdapter|fit|checkpoints|csv|earlyStopping|logger|progress|tensorBoard)$/;

const isTree = (value: unknown): value is object =>
  Array.isArray(value) || (Object(value) === value && Object.getPrototypeOf(value) === Object.prototype);

function dispose(value: unknown): void {
  if (value instanceof TensorClass) value.dispose();
  else if (value instanceof Module) for (const each of value.namedTensors()) each[1].dispose();
  else if (isTree(value)) Object.values(value).forEach(dispose);
}
const plain = (value: unknown): unknown =>
  value instanceof TensorClass
    ? [value.dtype, value.shape, value.tolist()]
    : value instanceof Module
      ? value.namedTensors().map(([name, each]) => [name, plain(each), each.requiresGrad])
      : Array.isArray(value)
        ? value.map(plain)
        : isTree(value)
          ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]))
          : value;
/** Words, gradients, modes, and what hangs on each layer. */
const seenOf = (model: Module) => [
  model.namedTensors().map(([name, each]) => [name, String(each.tolist()), each.requiresGrad, each.grad === null]),
  model.modules().map((layer) => [layer.training, Reflect.ownKeys(layer).map(String)]),
];

let [js, wasm] = [] as Device[];
beforeAll(async () => {
  [js, wasm] = [await init("js"), await init("wasm")];
});
beforeEach(() => {
  vi.spyOn(performance, "now").mockReturnValue(0);
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
});
afterEach(() => void vi.restoreAllMocks());

interface Asked {
  readonly device?: Device;
  /** The call of the program's functions that fails. */
  readonly fails?: number | undefined;
  readonly options?: (own: object, number: number) => object;
}

const broken = new RangeError("broken");

async function outcome(row: string, { device = js!, fails, options = (own) => own }: Asked = {}) {
  const model = models.languageModel(CONFIG, { device, generator: new Generator(7) });
  model.modules()[1]!.eval();
  let [calls, number] = [0, 0];
  const edges: [first: number, last: number][] = [];
  const yours = (f: Any) => {
    const edge: [number, number] = [Number.NaN, Number.NaN];
    edges.push(edge);
    return (...at: unknown[]) => {
      edge[1] = calls++;
      if (Number.isNaN(edge[0])) edge[0] = edge[1];
      if (edge[1] === fails) throw broken;
      return f(...at);
    };
  };
  const given: Given = {
    ...{ model, device, fileSystem: memoryFileSystem(), ends: [], yours: yours as Given["yours"] },
    options: (own = {}) => options(own, number++),
  };
  const [before, generator] = [seenOf(model), JSON.stringify(defaultGenerator.stateDict())];
  let [result, error]: unknown[] = [];
  try {
    const made = await ROWS[row]!(given);
    result = plain(made);
    dispose(made);
  } catch (thrown) {
    error = thrown;
  }
  for (const end of given.ends) end();
  const isSame = CHANGES.test(row) || JSON.stringify(seenOf(model)) === JSON.stringify(before);
  const drew = JSON.stringify(defaultGenerator.stateDict()) !== generator;
  const after = CHANGES.test(row) && plain(model);
  dispose(model);
  return { result: [result, after], error, edges: new Set(edges.flat()), number, isSame, drew };
}

it("has a row of each export", () => {
  const rows = new Set(Object.keys(ROWS).map((name) => /\w+/.exec(name)![0]));
  expect(Object.keys({ ...data, ...models, ...train }).filter((name) => !rows.has(name))).toEqual([]);
});

const rows = Object.keys(ROWS);
const plainly = new Map<string, Awaited<ReturnType<typeof outcome>>>();

it("leaves model and default generator as they were, and where a function of yours fails, throws its error and leaves nothing", async () => {
  await init("js");
  const problems: string[] = [];
  for (const row of rows) {
    const before = js!.memory().tensors;
    const { edges, error, isSame, drew } = plainly.set(row, await outcome(row)).get(row)!;
    const own = js!.memory().tensors - before; // those of others may be collected
    if (own > 0 && !CHANGES.test(row)) problems.push(`${row} leaves ${own} tensors`);
    if (error !== undefined || !isSame || (drew && row !== "loadAdapter"))
      problems.push(`${row}: ${error}, ${isSame ? "the same" : "another"} model, ${drew ? "drew" : "drew nothing"}`);
    for (const fails of edges) {
      const { tensors } = js!.memory();
      const failed = await outcome(row, { fails });
      const left = js!.memory().tensors - tensors;
      if (failed.error !== broken || !failed.isSame || left > 0)
        problems.push(
          `${row}, call ${fails}: ${failed.error}, left ${left}, ${failed.isSame ? "the same" : "another"} model`,
        );
    }
  }
  expect(problems, problems.join("\n")).toEqual([]);
});

it("takes an option of undefined for one that is left out, and says which options there are", async () => {
  await init("js");
  const problems: string[] = [];
  for (const row of rows) {
    const { number, result } = plainly.get(row)!;
    const names: string[][] = [];
    for (let at = 0; at < number; at++) {
      const { error } = await outcome(row, { options: (own, i) => (i === at ? { ...own, "no such option": 1 } : own) });
      names.push(/Options: (.*?)\.|$/.exec(String(error))?.[1]?.split(", ") ?? [`none: ${error}`]);
    }
    if (number === 0) continue;
    const all = await outcome(row, {
      options: (own, i) => ({ ...Object.fromEntries(names[i]!.map((name) => [name, undefined])), ...own }),
    });
    const isSame = JSON.stringify(all.result) === JSON.stringify(result);
    if (all.error !== undefined || !isSame) problems.push(`${row} of ${names}: ${all.error ?? "other results"}`);
  }
  expect(problems, problems.join("\n")).toEqual([]);
});

/** Of the default device: data, and what is read from files. The callbacks compute nothing. */
const ELSEWHERE = /Dataset|fromPretrained|loadAdapter|csv|logger|progress|checkpoints|SummaryWriter/;

it("computes where the model is, whatever the default device is", async () => {
  await init("js");
  const allocate = vi.spyOn(js!.pool, "allocate");
  for (const row of rows.filter((row) => !(/\w+/.exec(row)![0] in data) && !ELSEWHERE.test(row)))
    expect([row, (await outcome(row, { device: wasm! })).error, allocate.mock.calls.length]).toEqual([
      row,
      undefined,
      0,
    ]);
});
