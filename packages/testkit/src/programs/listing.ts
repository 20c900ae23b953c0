/** A program as the TypeScript that a user would have written. */
import {
  type Argument,
  type Fill,
  type Id,
  type IndexItem,
  type Program,
  type Statement,
  statementsOf,
} from "./program";

export function listing(program: Program): string {
  const { leaves, layers, optimizers, averages, scaler, prelude, bodies, rounds, resume } = program;
  const lines: string[] =
    statementsOf(program).some(({ do: kind }) => kind === "random") || layers.some(({ kind }) => kind === "Dropout")
      ? ["const generator = new Generator(7);"]
      : [];
  for (const { id, kind, sizes, options, dtype } of layers) {
    const given = kind === "Dropout" ? "{ generator }" : JSON.stringify({ ...options, dtype });
    lines.push(`const ${id} = new ${kind}(${[...sizes, given].join(", ")});`);
  }
  for (const { id, kind, shape, dtype, fill, of } of leaves) {
    if (of !== undefined) {
      lines.push(`const ${id} = ${of.layer}.${of.name};`, `${id}.set(${numbers(fill)});`);
      continue;
    }
    const make = kind === "parameter" ? "parameter" : "tensor";
    const more = kind === "marked" ? ", requiresGrad: true" : kind === "parameter" ? `, name: "${id}"` : "";
    lines.push(`const ${id} = ${make}(${numbers(fill)}, { shape: [${shape}], dtype: "${dtype}"${more} });`);
  }
  for (const { id, kind, options, groups, schedule } of optimizers) {
    const own = groups.map(({ params, options }) => `{ params: [${params.join(", ")}]${inside(options)} }`);
    lines.push(`const ${id} = new ${kind}([${own.join(", ")}], ${JSON.stringify(options)});`);
    if (schedule) lines.push(`const ${id}Schedule = new ${schedule.kind}(${id}, ${JSON.stringify(schedule.options)});`);
  }
  for (const { id, params, options } of averages) {
    const named = params.map((param) => `["${param}", ${param}]`);
    lines.push(`const ${id} = new ExponentialMovingAverage([${named.join(", ")}], ${JSON.stringify(options)});`);
  }
  if (scaler !== null) lines.push(`const scaler = new GradScaler(${JSON.stringify(scaler)});`);
  for (const { id, hooks = [] } of optimizers) {
    for (const { event, body } of hooks) {
      lines.push(`${id}.on("${event}", () => {`, ...indent(body.flatMap(show)), "});");
    }
  }
  lines.push(...prelude.flatMap(show));
  const option = program.check === "spaced" ? "" : `, { check: "${program.check}" }`;
  bodies.forEach(({ args, statements, results }, i) => {
    lines.push(
      `const body${i} = compile((${args.join(", ")}) => {`,
      ...indent(statements.flatMap(show)),
      `  return { ${results.join(", ")} };`,
      `}${option});`,
    );
  });
  rounds.forEach(({ before, body, args, eager }, i) => {
    if (i === resume.round)
      lines.push(`// resumed runs are saved and built anew here; loaded: ${resume.order.join(", ")}`);
    const own = bodies[body]!.args;
    const given = own.map((id) => passed(id, args[id]));
    const outside = Object.entries(args).filter(([id]) => !own.includes(id));
    lines.push(...before.flatMap(show), ...outside.map(([id, value]) => `${id} = ${value};`));
    lines.push(`body${body}(${given.join(", ")});${eager ? " // eager" : ""}`);
  });
  return lines.join("\n");
}

function passed(id: string, given: Argument | undefined): string {
  if (typeof given !== "object") return String(given ?? id);
  if ("result" in given) return `last.${given.result}`;
  if ("as" in given) return `the same as ${given.as}`;
  const { fill, rows, inside } = given;
  return `${numbers(fill)} as ${id}${rows === undefined ? "" : `, ${rows} rows`}${inside ? ", inside" : ""}`;
}

const indent = (lines: readonly string[]) => lines.map((line) => `  ${line}`);

const numbers = ({ kind, seed, below }: Fill) => `${kind}(${seed}${below === undefined ? "" : `, ${below}`})`;

const inside = (options: object) => (Object.keys(options).length === 0 ? "" : `, ...${JSON.stringify(options)}`);

/** An index with the names of its tensors. */
function brackets(index: readonly IndexItem[], tensors: readonly Id[]): string {
  const left = [...tensors];
  const shown = index.map((item) => (typeof item === "string" ? left.shift() : JSON.stringify(item)));
  return `[${shown.join(", ")}]`;
}

const METHODS = /^(erf|sin|cos|fma|less|select|gather|layerNorm|conv2d)$/;

function show(statement: Statement): string[] {
  const made = (SHOWN[statement.do] as (statement: Statement) => string | string[])(statement);
  return typeof made === "string" ? [`${made};`] : made;
}

const block = (head: string, body: readonly Statement[], end: string): string[] => [
  head,
  ...indent(body.flatMap(show)),
  end,
];

const SHOWN: { [Kind in Statement["do"]]: (one: Extract<Statement, { do: Kind }>) => string | string[] } = {
  op({ id, op, of, options }) {
    if (op === "CrossAttention") {
      const call = JSON.stringify({ needWeights: options?.needWeights, isCausal: options?.isCausal });
      return `const [${id}] = ${options?.layer}.forward(${of[0]}, ${of[1]}, ${of[1]}, ${call})`;
    }
    if (op === "MultiheadAttention") {
      const call = JSON.stringify({ needWeights: false, isCausal: options?.isCausal });
      return `const [${id}] = ${options?.layer}.forward(${of[0]}, ${of[0]}, ${of[0]}, ${call})`;
    }
    const made = /^(LSTM|GRU|RNN)$/.test(op) ? `[${id}]` : id;
    if (options?.layer !== undefined) return `const ${made} = ${options.layer}.forward(${of[0]})`;
    const given = options ? [JSON.stringify(options)] : [];
    if (op === "concat") return `const ${id} = concat([${of.join(", ")}], ${options?.axis})`;
    if (op === "crossEntropy") return `const ${id} = crossEntropyRows(${of.join(", ")})`;
    if (METHODS.test(op) || typeof of[0] === "number") return `const ${id} = ${op}(${[...of, ...given].join(", ")})`;
    return `const ${id} = ${of[0]}.${op}(${[...of.slice(1), ...given].join(", ")})`;
  },
  constant: ({ id, fill, shape, dtype }) =>
    `const ${id} = tensor(${numbers(fill)}, { shape: [${shape}], dtype: "${dtype}" })`,
  random: ({ id, normal, shape, dtype }) =>
    `const ${id} = ${normal ? "randn" : "rand"}([${shape}], { dtype: "${dtype}", generator })`,
  set: ({ to, from }) => `${to}.set(${typeof from === "string" ? from : numbers(from)})`,
  move: ({ of, from, to, count }) => `span(${of}, ${to}, ${to + count}).set(span(${of}, ${from}, ${from + count}))`,
  assign: ({ of, index, tensors, from }) => `${of}.assign(${brackets(index, tensors)}, ${from})`,
  writePart: ({ of, op, options, from }) => `${of}.${op}(${JSON.stringify(options)}).set(${from})`,
  grad: ({ id, of, by }) => `const [${id}] = grad(${of}, [${by}], { createGraph: true })`,
  freezeLayer: ({ layer }) => `${layer}.freeze()`,
  follow: ({ layer, other }) =>
    `noGrad(() => ${layer}.parameters().forEach((weight, i) => weight.set(${other}.parameters()[i])))`,
  replace: ({ layer, seed }) => `model.${layer} = another ${layer} of numbers(${seed})`,
  property: ({ layer, name, value }) => `${layer}.${name} = ${value}`,
  stale: ({ of, by }) => [
    "{",
    `  const loss = ${of}.mul(${by}).sum();`,
    `  ${by}.set(${of});`,
    "  loss.backward(); // CHANGED",
    "}",
  ],
  tidy: ({ body, returns }) => [
    ...block(`const [${returns.join(", ")}] = tidy(() => {`, body, `  return [${returns.join(", ")}];`),
    "});",
  ],
  noGrad: ({ body }) => block("noGrad(() => {", body, "});"),
  when: ({ flag, body }) => block(`if (${flag}) {`, body, "}"),
  freeze: ({ of, frozen }) => `${of}.requiresGrad = ${!frozen}`,
  keep: ({ of }) => `keep(${of})`,
  dispose: ({ of }) => `${of}.dispose()`,
  backward({ of, gradient, scaled, retain }) {
    if (scaled) return `scaler.scale(${of}).backward()`;
    return `${of}.backward(${gradient ?? (retain ? "undefined" : "")}${retain ? ", { retainGraph: true }" : ""})`;
  },
  gradient({ of, value }) {
    if (typeof value === "number") return `if (${of}.grad) ${of}.grad = ${of}.grad.mul(${value})`;
    return `${of}.grad = ${value === null || typeof value === "string" ? value : numbers(value)}`;
  },
  clip({ how, params, limit, normType }) {
    const name = { norm: "clipGradNorm", each: "clipGradNormEach", value: "clipGradValue" }[how];
    return `${name}([${params.join(", ")}], ${limit}${normType ? `, { normType: ${normType} }` : ""})`;
  },
  step: ({ optimizer, scaled }) => (scaled ? `scaler.step(${optimizer})` : `${optimizer}.step()`),
  unscale: ({ optimizer }) => `scaler.unscale(${optimizer})`,
  update: () => "scaler.update()",
  average: ({ average }) => `${average}.update()`,
  averaged: ({ average }) => `${average}.averaged(() => {})`,
  schedule: ({ optimizer }) => `${optimizer}Schedule.step()`,
  addGroup: ({ optimizer, params, options }) =>
    `${optimizer}.addGroup({ params: [${params.join(", ")}]${inside(options)} })`,
  train: ({ training, layers = ["model"] }) => layers.map((layer) => `${layer}.${training ? "train" : "eval"}();`),
  tie: ({ layer, name, to }) => `${layer}.${name} = ${to}`,
  onForward: ({ layer, factor }) => `${layer}.onForward((_layer, _inputs, output) => output.mul(${factor}))`,
  onGradient: ({ of, body }) => block(`onGradient(${of}, () => {`, body, "});"),
  save: ({ optimizer }) => `const ${optimizer}State = copied(${optimizer}.stateDict())`,
  load: ({ optimizer }) => `${optimizer}.loadStateDict(${optimizer}State)`,
  reset: ({ optimizer }) => `${optimizer}.dispose()`,
  zeroGrad: ({ optimizer, setToNull }) => `${optimizer}.zeroGrad({ setToNull: ${setToNull} })`,
  option: ({ optimizer, group, name, value }) => `${optimizer}.groups[${group}].${name} = ${JSON.stringify(value)}`,
};
