/**
 * `npx nx g @opt/tools:optimizer lion`: writes the package of a new optimizer, with a test that fails until its numbers are right, and exports it from
 * `@opt/optim`.
 * What every such package has besides (build, types, licence, manifest fields) is not written: it has one place for all.
 */
import { run } from "../run.mjs";

/** What exports every optimizer again, a line for each package. */
const ALL = "packages/optim/src/index.ts";

/** @param {string} name `schedule-free` @returns {string} `ScheduleFree` */
const className = (name) => name.replace(/(?:^|-)(.)/g, (_, letter) => letter.toUpperCase());

/** @param {{ name: string, title: string, base: string }} names */
const files = ({ name, title, base }) => ({
  "package.json": `{
  "name": "@opt/${name}",
  "version": "0.0.0",
  "description": "${title} on every device",
  "keywords": ["${name}", "optimizer", "deep-learning"],
  "type": "module",
  "exports": {
    ".": { "@opt/source": "./src/index.ts", "default": "./dist/index.js" },
    "./rules": { "@opt/source": "./src/index.ts", "default": "./dist/index.js" }
  },
  "opt": { "optimizers": { "${title}": [{}, { "weightDecay": 0.25 }, { "maximize": true }] } },
  "peerDependencies": { "@opt/core": "^0.0.0" },
  "devDependencies": { "@opt/core": "*", "@opt/testkit": "*" }
}
`,
  "README.md": `# @opt/${name}

${title} on every device of \`@opt/core\`. The rule variants are at \`@opt/${name}/rules\`.

\`\`\`sh
npm i @opt/core @opt/${name}
\`\`\`

\`\`\`js
import { parameter } from "@opt/core";
import { ${title} } from "@opt/${name}";

const w = parameter([1, -2, 3]);
const optimizer = new ${title}([w], { lr: 0.01 });
w.mul(w).sum().backward();
optimizer.step();
optimizer.zeroGrad();
console.log(await w.data());
\`\`\`

| option | default | |
|---|---|---|
| \`lr\` | 1e-3 | learning rate |
| \`weightDecay\` | 0 | L2, added to the gradient |
| \`maximize\` | false | maximize instead of minimize |
`,
  "src/index.ts": `/** ${title}: options, the update of one element, its numbers of a step, and the class. */
import {
  type Algorithm,
  type BaseOptions,
  checkNotNegative,
  defineRule,
  type Expression,
  everyVariant,
  fma,
  Optimizer,
  ruleByVariant,
  type VariantOf,
} from "@opt/core";

export interface ${title}Options extends BaseOptions {
  /** Learning rate, >= 0. Default 1e-3. */
  lr: number;
  /** Weight decay, >= 0. Default 0. */
  weightDecay: number;
  /** Maximize instead of minimize. Default false. */
  maximize: boolean;
}

const choices = {
  /** Weight decay, added to the gradient. */
  decay: [false, true],
} as const;

/** What makes one variant of the rule different from another. */
export type ${title}Variant = VariantOf<typeof choices>;

/** The rule of a variant; the same object for the same variant. */
export const ${base}Rule = /* @__PURE__ */ ruleByVariant(choices, ({ decay }) =>
  defineRule({
    name: \`${base}\${decay ? "L2" : ""}\`,
    // Buffers after the gradient are state, zero at first.
    buffers: ["param", "grad"],
    scalars: [...(decay ? ["decay"] : []), "negLr"],
    update({ param, grad }, scalars) {
      const h = scalars as Record<string, Expression>;
      const g = decay ? fma(h.decay!, param, grad) : grad;
      return { param: fma(h.negLr!, g, param) };
    },
  }),
);

/** Every variant, for kernel builds and tests. */
export const ${base}Rules = /* @__PURE__ */ everyVariant(choices, ${base}Rule);

const ${base}: Algorithm<${title}Options> = {
  name: "${title}",
  defaults: { lr: 1e-3, weightDecay: 0, maximize: false },
  validate: ({ weightDecay }) => checkNotNegative("${title}", "weightDecay", weightDecay),
  rule: ({ weightDecay }) => ${base}Rule({ decay: weightDecay !== 0 }),
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, weightDecay }, _, { neg }) => ({ decay: weightDecay, negLr: neg(lr) }),
};

/**
 * ${title}: say in one line what it does.
 *
 *     g = grad (+ weightDecay * p)          p -= lr * g
 *
 * Say whose numbers they are, and name the source.
 *
 * @throws OptError BAD_ARGUMENT for an option out of range; further as \`Optimizer\`
 * @example
 * import { parameter } from "@opt/core";
 * import { ${title} } from "@opt/${name}";
 * const w = parameter([1, 2, 3]);
 * const optimizer = new ${title}([w], { lr: 0.01 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class ${title} extends Optimizer<${title}Options> {
  protected override define(): Algorithm<${title}Options> {
    return ${base};
  }
}
`,
  [`src/${name}.test.ts`]: `import { parameter, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { ${title}, type ${title}Options } from "./index";

optimizerSuite(exported);

it.each<[string, object]>([
  ["lr below 0", { lr: -1 }],
  ["weightDecay NaN", { weightDecay: Number.NaN }],
])("throws for %s, for all and for a group", (_, options) => {
  const w = parameter([1]);
  expectCode("BAD_ARGUMENT", () => new ${title}([w], options as Partial<${title}Options>));
  expectCode("BAD_ARGUMENT", () => new ${title}([{ params: [w], ...options }]));
});

it("has the defaults of its paper", () => {
  const { params, names, ...options } = new ${title}([parameter([1])]).groups[0]!;
  expect(options).toEqual({ lr: 1e-3, weightDecay: 0, maximize: false });
});

/** The steps of one element in plain float64, from the source's formula. */
function plainSteps(_first: number, _gradients: readonly number[], _options: Pick<${title}Options, "lr">): number[] {
  throw new Error("write ${title}'s steps here, from the source's formula");
}

it("has the numbers of a plain float64 loop", () => {
  const w = parameter([0.5], { dtype: "f64" });
  const options = { lr: 0.1 };
  const optimizer = new ${title}([w], options);
  const gradients = Array.from({ length: 200 }, (_, t) => Math.sin(3 * t + 1));
  for (const [t, expected] of plainSteps(0.5, gradients, options).entries()) {
    w.grad = tensor([gradients[t]!], { dtype: "f64" });
    optimizer.step();
    expect(w.dataSync()).toAgreeWith([expected], { absolute: 1e-15, relative: 1e-12 });
  }
});
`,
});

/**
 * @param {{ exists(path: string): boolean, read(path: string, encoding: string): string, write(path: string, text: string): void }} tree
 * @param {{ name: string, class?: string }} options
 */
export default function generate(tree, { name, class: given }) {
  const folder = `packages/optimizers/${name}`;
  if (tree.exists(folder)) throw new Error(`${folder} is there already.`);
  const title = given ?? className(name);
  const base = name.replaceAll("-", "");
  for (const [file, text] of Object.entries(files({ name, title, base }))) tree.write(`${folder}/${file}`, text);
  const [first, ...exported] = tree.read(ALL, "utf8").trimEnd().split("\n");
  const lines = [first, ...[...exported, `export * from "@opt/${name}";`].sort()];
  tree.write(ALL, `${lines.join("\n")}\n`);
  // npm links the package into node_modules and notes it in the lock file.
  return () => {
    const steps = /** @type {const} */ ([
      ["node", ["tools/manifests.mjs"]],
      ["npm", ["install", "--no-audit", "--no-fund"]],
    ]);
    for (const [command, args] of steps) {
      const { ok, stderr } = run(command, [...args], { quiet: true });
      if (!ok) throw new Error(`${command} cannot link @opt/${name}: ${stderr}`);
    }
    console.log(`Next: write ${folder}/src/index.ts, then npm run unit -- ${folder}/`);
  };
}
