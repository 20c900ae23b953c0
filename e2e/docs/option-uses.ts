/** Which options tests give to public functions: read from their calls by TypeScript. Calls that must throw do not count. */
import ts from "typescript";
import { behind, type Callees, implementationOf } from "./options";

/** The options that tests give, by what declares the function. */
export type Uses = ReadonlyMap<ts.Declaration, ReadonlySet<string>>;

type Call = ts.CallExpression | ts.NewExpression;

/** How many variables, parameters and wrappers are looked through. */
const DEPTH = 4;

export function readUses(program: ts.Program, callees: Callees, isTest: (file: string) => boolean): Uses {
  return new Reader(program, callees, isTest).uses;
}

class Reader {
  readonly uses = new Map<ts.Declaration, Set<string>>();
  readonly #checker: ts.TypeChecker;
  readonly #isTest: (file: string) => boolean;
  readonly #callees: Callees;
  /** By the last part of their names: `Linear`, `sum`. */
  readonly #byName = new Map<string, ts.Declaration[]>();
  readonly #optionNames: ReadonlySet<string>;
  readonly #calls: Call[] = [];
  readonly #callsByName = new Map<string, ts.CallExpression[]>();
  readonly #literals = new Map<ts.SourceFile, ReadonlySet<ts.Declaration>>();

  constructor(program: ts.Program, callees: Callees, isTest: (file: string) => boolean) {
    this.#checker = program.getTypeChecker();
    this.#isTest = isTest;
    this.#callees = callees;
    for (const [declaration, { name }] of callees) {
      const last = name.replace(/.*[:. ]/, "");
      this.#byName.set(last, [...(this.#byName.get(last) ?? []), declaration]);
    }
    const allParameters = [...callees.values()].flatMap(({ parameters }) => [...parameters.values()]);
    this.#optionNames = new Set(allParameters.flatMap((options) => [...options]));
    const rows: ts.ArrayLiteralExpression[] = [];
    for (const file of program.getSourceFiles().filter(({ fileName }) => isTest(fileName))) {
      forEachThatWorks(file, (node) => {
        if (ts.isArrayLiteralExpression(node)) rows.push(node);
        if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return;
        if (node.arguments?.length) this.#calls.push(node);
        if (ts.isNewExpression(node)) return;
        const name = nameOf(node.expression);
        if (name === undefined) return;
        const known = this.#callsByName.get(name);
        if (known) known.push(node);
        else this.#callsByName.set(name, [node]);
      });
    }
    for (const row of rows) this.#readRow(row);
    for (const call of this.#calls) this.#readCall(call);
  }

  /** A row of a table that names what is called: `["StepLR", { stepSize: 2 }]`. */
  #readRow({ elements: [name, options] }: ts.ArrayLiteralExpression): void {
    const callee = name && ts.isStringLiteral(name) ? this.#byName.get(name.text)?.at(-1) : undefined;
    if (callee === undefined || options === undefined) return;
    if (!this.#knowsAll(callee)) this.#add(callee, this.#given(options));
  }

  #readCall(call: Call): void {
    // Whose member it is takes long to find, and most are known.
    if (ts.isPropertyAccessExpression(call.expression)) {
      const named = this.#byName.get(call.expression.name.text);
      if (named?.every((callee) => this.#knowsAll(callee)) ?? true) return;
    }
    for (const callee of this.#calleesOf(call.expression)) {
      for (const [place, options] of this.#callees.get(callee)!.parameters) {
        const argument = call.arguments?.[place];
        if (argument === undefined || this.#knows(callee, options)) continue;
        // A parameter of its own is given by any argument.
        const isOwn = options.size === 1 && !ts.isObjectLiteralExpression(bare(argument));
        this.#add(callee, isOwn ? options : this.#given(argument));
      }
    }
  }

  /** No further call has to be typed. */
  #knows(callee: ts.Declaration, options: ReadonlySet<string>): boolean {
    const known = this.uses.get(callee);
    return known !== undefined && [...options].every((option) => known.has(option));
  }

  #knowsAll(callee: ts.Declaration): boolean {
    return [...this.#callees.get(callee)!.parameters.values()].every((options) => this.#knows(callee, options));
  }

  #add(callee: ts.Declaration, names: Iterable<string>): void {
    const known = this.uses.get(callee) ?? new Set();
    this.uses.set(callee, known);
    for (const name of names) known.add(name);
  }

  /** The public functions that an expression may be. */
  #calleesOf(given: ts.Expression, depth = 0): ts.Declaration[] {
    const expression = bare(given);
    // What it is a member of would be typed: most calls of tests are of matchers.
    if (ts.isPropertyAccessExpression(expression) && !this.#byName.has(expression.name.text)) return [];
    const declaration = this.#declarationOf(expression);
    const known = this.#declarationsOf(expression).filter((each) => this.#callees.has(each));
    if (known.length > 0) return known;
    // Types are asked last: they take long.
    if (!this.#mayHold(expression, declaration)) return [];
    const type = this.#checker.getTypeAtLocation(expression);
    const found = partsOf(type).flatMap(({ symbol }) => {
      const [own] = symbol?.declarations ?? [];
      return own !== undefined && this.#callees.has(own) ? [own] : [];
    });
    if (found.length > 0 || declaration === undefined || depth === DEPTH) return found;
    return this.#sourcesOf(declaration).flatMap((source) => this.#calleesOf(source, depth + 1));
  }

  #mayHold(expression: ts.Expression, declaration: ts.Declaration | undefined): boolean {
    if (!ts.isIdentifier(expression)) return true;
    return (
      declaration !== undefined &&
      (ts.isParameter(declaration) || ts.isVariableDeclaration(declaration) || ts.isBindingElement(declaration))
    );
  }

  /** The names of the options that an expression gives. */
  #given(argument: ts.Expression, depth = 0): string[] {
    const expression = bare(argument);
    if (ts.isConditionalExpression(expression))
      return [expression.whenTrue, expression.whenFalse].flatMap((each) => this.#given(each, depth));
    if (ts.isBinaryExpression(expression))
      return [expression.left, expression.right].flatMap((each) => this.#given(each, depth));
    if (ts.isObjectLiteralExpression(expression)) {
      return expression.properties.flatMap((property) => {
        if (ts.isSpreadAssignment(property)) return this.#given(property.expression, depth);
        return isGiven(property) ? [textOf(property.name)] : [];
      });
    }
    const declaration = ts.isIdentifier(expression) ? this.#declarationOf(expression) : undefined;
    const sources = declaration !== undefined && depth < DEPTH ? this.#sourcesOf(declaration) : [];
    return [...sources.flatMap((source) => this.#given(source, depth + 1)), ...this.#givenByType(expression)];
  }

  /** By the properties of its type that a test's literal or type declares, or that a literal of the same file gives. */
  #givenByType(expression: ts.Expression): string[] {
    const literals = this.#literalsOf(expression.getSourceFile());
    const properties = partsOf(this.#checker.getTypeAtLocation(expression)).flatMap((part) =>
      part.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection) ? this.#checker.getPropertiesOfType(part) : [],
    );
    const given = properties.filter(({ declarations = [] }) =>
      declarations.some((each) => literals.has(each) || (this.#isTest(each.getSourceFile().fileName) && isGiven(each))),
    );
    return given.map(({ name }) => name);
  }

  /** The declared members that object literals of a file give. */
  #literalsOf(file: ts.SourceFile): ReadonlySet<ts.Declaration> {
    const known = this.#literals.get(file);
    if (known !== undefined) return known;
    const found = new Set<ts.Declaration>();
    this.#literals.set(file, found);
    forEachThatWorks(file, (node) => {
      if (!ts.isObjectLiteralExpression(node)) return;
      const given = node.properties.filter(
        ({ name }, i) => name && this.#optionNames.has(textOf(name)) && isGiven(node.properties[i]!),
      );
      const type = given.length > 0 ? this.#checker.getContextualType(node) : undefined;
      for (const part of type === undefined ? [] : partsOf(type))
        for (const { name } of given)
          for (const declaration of part.getProperty(textOf(name!))?.declarations ?? []) found.add(declaration);
    });
    return found;
  }

  /** What a variable or the parameter of a named function is given. */
  #sourcesOf(declaration: ts.Declaration): ts.Expression[] {
    if (ts.isVariableDeclaration(declaration)) return declaration.initializer ? [declaration.initializer] : [];
    if (!ts.isParameter(declaration)) return [];
    const { parent } = declaration;
    const named = ts.isFunctionDeclaration(parent) || ts.isMethodDeclaration(parent) ? parent : parent.parent;
    const { name } = named as ts.NamedDeclaration;
    if (name === undefined || !ts.isIdentifier(name)) return [];
    const place = parent.parameters.indexOf(declaration);
    return (this.#callsByName.get(name.text) ?? []).flatMap((call) => {
      const argument = call.arguments[place];
      return argument !== undefined && this.#declarationOf(call.expression) === named ? [argument] : [];
    });
  }

  /** Of a member of several types: each of theirs. */
  #declarationsOf(expression: ts.Expression): readonly ts.Declaration[] {
    const one = this.#declarationOf(expression);
    if (!ts.isPropertyAccessExpression(expression)) return one === undefined ? [] : [one];
    return this.#checker.getSymbolAtLocation(expression.name)?.declarations ?? [];
  }

  #declarationOf(expression: ts.Expression): ts.Declaration | undefined {
    const name = ts.isPropertyAccessExpression(expression) ? expression.name : expression;
    const symbol = this.#checker.getSymbolAtLocation(name);
    return symbol && implementationOf(this.#checker, behind(this.#checker, symbol));
  }
}

/** Walks through a file, without what must throw: `expectCode(...)` and `expect(...).toThrow(...)`. */
function forEachThatWorks(node: ts.Node, visit: (node: ts.Node) => void): void {
  if (ts.isCallExpression(node) && mustThrow(node.expression)) return;
  visit(node);
  ts.forEachChild(node, (child) => forEachThatWorks(child, visit));
}

function mustThrow(called: ts.Expression): boolean {
  if (ts.isIdentifier(called)) return /^(expectCode|rejects?)$/.test(called.text);
  if (!ts.isPropertyAccessExpression(called)) return false;
  const before = nameOf(called.expression);
  return before === "rejects" || (called.name.text.startsWith("toThrow") && before !== "not");
}

const partsOf = (type: ts.Type): readonly ts.Type[] => (type.isUnion() ? type.types : [type]);

/** Without parentheses and assertions of types. */
function bare(expression: ts.Expression): ts.Expression {
  const isWrapped =
    ts.isParenthesizedExpression(expression) ||
    ts.isAsExpression(expression) ||
    ts.isSatisfiesExpression(expression) ||
    ts.isNonNullExpression(expression);
  return isWrapped ? bare(expression.expression) : expression;
}

const isGiven = (node: ts.Node): boolean =>
  !(ts.isPropertyAssignment(node) && ts.isIdentifier(node.initializer) && node.initializer.text === "undefined");

const textOf = (name: ts.PropertyName): string =>
  ts.isIdentifier(name) || ts.isStringLiteral(name) ? name.text : name.getText();

function nameOf(expression: ts.Expression): string | undefined {
  if (ts.isIdentifier(expression)) return expression.text;
  return ts.isPropertyAccessExpression(expression) ? expression.name.text : undefined;
}
