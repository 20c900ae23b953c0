/** Writes update rules out as C++: one function template a rule and a table by hash. */
import {
  DIVISOR_REACH,
  distinctByHash,
  indent,
  multipliedRoots,
  type Program,
  type Rule,
  writeStatements,
} from "@opt/core/backend";
import { cpp } from "./dialect";

export interface GeneratedRules {
  /** Included by every instruction set: the functions and their table. */
  readonly functions: string;
  /** Included by the addon: the hashes in the table's order. */
  readonly hashes: string;
}

/** Rules that compute the same (equal hashes) are written once. */
export function writeRules(rules: readonly Rule[]): GeneratedRules {
  const distinct = distinctByHash(rules);
  const rows = distinct.map(
    (rule) => `    {rule_${rule.hash}<float>, rule_${rule.hash}<double>, ${writePacked(rule)}},`,
  );
  const most = (counts: readonly number[]) => Math.max(1, ...counts);
  return {
    functions: [
      "// Written by @opt/kernels-cpu from the rules of the algorithm packages.",
      "",
      ...distinct.flatMap((rule) => [writeRule(rule), ""]),
      `constexpr int MAX_BUFFERS = ${most(distinct.map(({ buffers }) => buffers.length))};`,
      `constexpr int MAX_SCALARS = ${most(distinct.map(({ scalars }) => scalars.length))};`,
      `constexpr Rule RULES[] = {\n${rows.join("\n")}\n};`,
      "",
    ].join("\n"),
    hashes: distinct.map(({ hash, name }) => `"${hash}",  // ${name}\n`).join(""),
  };
}

/** How the rule is computed where all of its state is packed, as optimizers pack it: by buffer whether its codes are signed. */
function writePacked({ buffers, scalars, writes, nonNegative, program, hash }: Rule): string {
  const state = buffers.slice(2);
  if (state.length === 0 || !state.every((buffer) => writes.includes(buffer))) return "{}";
  const [update, where] =
    multipliedRoots(program).divisors.length === 0
      ? [`rule_${hash}<Lanes>`, "always"]
      : [`rule_${hash}<Lanes, false>`, `isMultiplied_${hash}<float>`];
  const signs = state.map((buffer) => !nonNegative?.includes(buffer));
  return `OPT_PACKED_RULE(${update}, ${where}, ${scalars.length}, ${signs.join(", ")})`;
}

/** One rule as a function over elements `begin` to `end` of its buffers, which may divide roots where scalars are out of reach. */
export function writeRule({ buffers, writes, program, name, hash }: Rule): string {
  const isRead = (slot: number) => program.nodes.some(({ op, value }) => op === "buffer" && value === slot);
  const pointers = buffers.flatMap((buffer, slot) => {
    const isWritten = writes.includes(buffer);
    return isWritten || isRead(slot) ? [`  ${isWritten ? "T*" : "const T*"} ${buffer}Array = buffers[${slot}];`] : [];
  });
  const { program: faster, divisors } = multipliedRoots(program);
  const conditions = divisors.map((slot) => `isMultiplied(scalars[${slot}], ${DIVISOR_REACH})`);
  const [hasFaster, condition] = [divisors.length > 0, `isMultiplied_${hash}`];
  return [
    `// ${name}`,
    ...(hasFaster
      ? ["template <typename T>", `bool ${condition}(const T* scalars) {`, `  return ${conditions.join(" && ")};`, "}"]
      : []),
    `template <typename T${hasFaster ? ", bool MAY_DIVIDE = true" : ""}>`,
    `OPT_INLINE void rule_${hash}(T* const* buffers, [[maybe_unused]] const T* scalars, int64_t begin, int64_t end) {`,
    ...pointers,
    ...(hasFaster
      ? [`  if (!MAY_DIVIDE || ${condition}(scalars)) {`, ...indent(writeLoop(faster)), "    return;", "  }"]
      : []),
    ...writeLoop(program),
    "}",
  ].join("\n");
}

/** What is uniform, and the loop over elements. */
function writeLoop(program: Program): string[] {
  const { uniform, element } = writeStatements(program, cpp, "f64", {
    scalar: (slot) => `scalars[${slot}]`,
    load: (_slot, buffer) => `${buffer}Array[i]`,
    store: (_slot, buffer, value) => `${buffer}Array[i] = ${value};`,
  });
  return [
    ...indent(uniform),
    "  OPT_INDEPENDENT",
    "  for (int64_t i = begin; i < end; i++) {",
    ...indent(element, 4),
    "  }",
  ];
}
