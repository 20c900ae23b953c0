/** A program as the TypeScript that a user would have written. */
import { type Argument, type Fill, type Program, type Statement, statementsOf } from "./program";

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
    const given = bodies[body]!.args.map((id) => passed(id, args[id]));
    lines.push(...before.flatMap(show), `body${body}(${given.join(", ")});${eager ? " // eager" : ""}`);
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

const METHODS = /^(erf|sin|cos|fma|less|select|gather|layerNorm|conv2d)$/;

function show(statement: Statement): string[] {
  switch (statement.do) {
    case "op": {
      const { id, op, of, options } = statement;
      if (op === "MultiheadAttention") {
        const call = JSON.stringify({ needWeights: false, isCausal: options?.isCausal });
        return [`const [${id}] = ${options?.layer}.forward(${of[0]}, ${of[0]}, ${of[0]}, ${call});`];
      }
      const made = op === "LSTM" || op === "GRU" ? `[${id}]` : id;
      if (options?.layer !== undefined) return [`const ${made} = ${options.layer}.forward(${of[0]});`];
      const given = options ? [JSON.stringify(options)] : [];
      if (op === "concat") return [`const ${id} = concat([${of.join(", ")}], ${options?.axis});`];
      if (op === "crossEntropy") return [`const ${id} = crossEntropyRows(${of.join(", ")});`];
      if (METHODS.test(op) || typeof of[0] === "number")
        return [`const ${id} = ${op}(${[...of, ...given].join(", ")});`];
      return [`const ${id} = ${of[0]}.${op}(${[...of.slice(1), ...given].join(", ")});`];
    }
    case "constant":
      return [
        `const ${statement.id} = tensor(${numbers(statement.fill)}, { shape: [${statement.shape}], dtype: "${statement.dtype}" });`,
      ];
    case "random": {
      const { id, normal, shape, dtype } = statement;
      return [`const ${id} = ${normal ? "randn" : "rand"}([${shape}], { dtype: "${dtype}", generator });`];
    }
    case "set":
      return [`${statement.to}.set(${typeof statement.from === "string" ? statement.from : numbers(statement.from)});`];
    case "stale": {
      const { of, by } = statement;
      return [
        "{",
        `  const loss = ${of}.mul(${by}).sum();`,
        `  ${by}.set(${of});`,
        "  loss.backward(); // CHANGED",
        "}",
      ];
    }
    case "tidy":
      return [
        `const [${statement.returns.join(", ")}] = tidy(() => {`,
        ...indent(statement.body.flatMap(show)),
        `  return [${statement.returns.join(", ")}];`,
        "});",
      ];
    case "noGrad":
      return ["noGrad(() => {", ...indent(statement.body.flatMap(show)), "});"];
    case "when":
      return [`if (${statement.flag}) {`, ...indent(statement.body.flatMap(show)), "}"];
    case "freeze":
      return [`${statement.of}.requiresGrad = ${!statement.frozen};`];
    case "keep":
      return [`keep(${statement.of});`];
    case "dispose":
      return [`${statement.of}.dispose();`];
    case "backward":
      return [
        statement.scaled
          ? `scaler.scale(${statement.of}).backward();`
          : `${statement.of}.backward(${statement.gradient ?? ""});`,
      ];
    case "gradient": {
      const { of, value } = statement;
      if (typeof value === "number") return [`if (${of}.grad) ${of}.grad = ${of}.grad.mul(${value});`];
      return [`${of}.grad = ${value === null || typeof value === "string" ? value : numbers(value)};`];
    }
    case "clip": {
      const { how, params, limit, normType } = statement;
      const name = { norm: "clipGradNorm", each: "clipGradNormEach", value: "clipGradValue" }[how];
      return [`${name}([${params.join(", ")}], ${limit}${normType ? `, { normType: ${normType} }` : ""});`];
    }
    case "step":
      return [statement.scaled ? `scaler.step(${statement.optimizer});` : `${statement.optimizer}.step();`];
    case "unscale":
      return [`scaler.unscale(${statement.optimizer});`];
    case "update":
      return ["scaler.update();"];
    case "average":
      return [`${statement.average}.update();`];
    case "averaged":
      return [`${statement.average}.averaged(() => {});`];
    case "schedule":
      return [`${statement.optimizer}Schedule.step();`];
    case "addGroup": {
      const { optimizer, params, options } = statement;
      return [`${optimizer}.addGroup({ params: [${params.join(", ")}]${inside(options)} });`];
    }
    case "train":
      return [`model.${statement.training ? "train" : "eval"}();`];
    case "save":
      return [`const ${statement.optimizer}State = copied(${statement.optimizer}.stateDict());`];
    case "load":
      return [`${statement.optimizer}.loadStateDict(${statement.optimizer}State);`];
    case "reset":
      return [`${statement.optimizer}.dispose();`];
    case "zeroGrad":
      return [`${statement.optimizer}.zeroGrad({ setToNull: ${statement.setToNull} });`];
    case "option":
      return [
        `${statement.optimizer}.groups[${statement.group}].${statement.name} = ${JSON.stringify(statement.value)};`,
      ];
  }
}
