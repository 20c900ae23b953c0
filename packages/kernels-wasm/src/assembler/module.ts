/** A module over one imported memory: imported functions, own functions, exports. */
import { type Code, name, unsigned, vector } from "./encoding";
import { FunctionBuilder, OWN_FUNCTION } from "./function";
import { type Effect, type Local, local, type Operand, push, TYPE_BYTE, type Value, type ValueType } from "./value";

/** 65,536 pages of 64 KiB: the 4 GiB that 32-bit addresses reach. */
export const MAXIMUM_PAGES = 65_536;

type Locals<P extends readonly ValueType[]> = { [I in keyof P]: Local<P[I]> };
type Operands<P extends readonly ValueType[]> = { [I in keyof P]: Operand<P[I]> };

/** A function of this module, to be called from another. */
export type Callable<P extends readonly ValueType[], R extends ValueType | "none"> = (
  ...operands: Operands<P>
) => R extends ValueType ? Value<R> : Effect;

export interface FunctionSignature<P extends readonly ValueType[], R extends ValueType | "none"> {
  readonly parameters: P;
  readonly result?: R;
  /** The name under which the host sees it. */
  readonly export?: string;
}

export class ModuleBuilder {
  readonly #shared: boolean;
  readonly #types: string[] = [];
  readonly #imports: Code[] = [];
  readonly #functions: { type: number; builder: FunctionBuilder }[] = [];
  readonly #exports: { name: string; index: number }[] = [];
  #importedFunctions = 0;

  /** `shared`: whether the memory, imported as `env.memory`, is shared between threads. */
  constructor(options: { readonly shared: boolean }) {
    this.#shared = options.shared;
  }

  /** A function of the host, imported as `env.<name>`. */
  import<const P extends readonly ValueType[], R extends ValueType | "none" = "none">(
    importName: string,
    signature: { readonly parameters: P; readonly result?: R },
  ): Callable<P, R> {
    const type = this.#type(signature.parameters, signature.result);
    this.#imports.push([...name("env"), ...name(importName), 0x00, ...unsigned(type)]);
    return this.#callable(unsigned(this.#importedFunctions++), signature);
  }

  /** Adds a function; `write` emits its statements and returns its result, if it has one. */
  function<const P extends readonly ValueType[], R extends ValueType | "none" = "none">(
    signature: FunctionSignature<P, R>,
    write: (f: FunctionBuilder, ...parameters: Locals<P>) => R extends ValueType ? Value<R> : void,
  ): Callable<P, R> {
    const { parameters } = signature;
    const builder = new FunctionBuilder(parameters.length);
    const index = this.#functions.length;
    this.#functions.push({ type: this.#type(parameters, signature.result), builder });
    if (signature.export !== undefined) this.#exports.push({ name: signature.export, index });
    const result = write(builder, ...(parameters.map((type, i) => local(type, i)) as Locals<P>));
    if (result !== undefined) builder.return(result as Value);
    return this.#callable([OWN_FUNCTION + index], signature);
  }

  /** Exports a function of (start, end, ...parameters) that does the body for each item from start to end. */
  items<const P extends readonly ValueType[]>(
    exportName: string,
    parameters: P,
    body: (f: FunctionBuilder, item: Local<"i32">, ...parameters: Locals<P>) => void,
  ): Callable<readonly ValueType[], "none"> {
    const all: readonly ValueType[] = ["i32", "i32", ...parameters];
    return this.function({ parameters: all, export: exportName }, (f, start, end, ...rest) => {
      const item = f.local("i32");
      f.for(item, start as Local<"i32">, end as Local<"i32">, 1, () =>
        body(f, item, ...(rest as unknown as Locals<P>)),
      );
    });
  }

  build(): Uint8Array<ArrayBuffer> {
    const limits = [this.#shared ? 0x03 : 0x01, ...unsigned(0), ...unsigned(MAXIMUM_PAGES)];
    const memory = [...name("env"), ...name("memory"), 0x02, ...limits];
    const imported = this.#importedFunctions;
    const exports = this.#exports.map((entry) => [...name(entry.name), 0x00, ...unsigned(imported + entry.index)]);
    const section = (id: number, content: number[]) => [id, ...unsigned(content.length), ...content];
    return Uint8Array.from([
      ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
      ...section(1, vector(this.#types.map((type) => type.split(",").map(Number)))),
      ...section(2, vector([...this.#imports, memory])),
      ...section(3, vector(this.#functions.map(({ type }) => unsigned(type)))),
      ...section(7, vector(exports)),
      ...section(10, vector(this.#functions.map(({ builder }) => builder.encode(imported)))),
    ]);
  }

  #callable<P extends readonly ValueType[], R extends ValueType | "none">(
    index: Code,
    { parameters, result }: { readonly parameters: P; readonly result?: R },
  ): Callable<P, R> {
    const call = (...operands: (Value | number)[]) => ({
      type: result ?? "none",
      code: [...parameters.flatMap((type, i) => push(type, operands[i]!)), 0x10, ...index],
    });
    return call as unknown as Callable<P, R>;
  }

  #type(parameters: readonly ValueType[], result: ValueType | "none" | undefined): number {
    const results = result === undefined || result === "none" ? [] : [[TYPE_BYTE[result]]];
    const type = [0x60, ...vector(parameters.map((parameter) => [TYPE_BYTE[parameter]])), ...vector(results)].join();
    const known = this.#types.indexOf(type);
    return known >= 0 ? known : this.#types.push(type) - 1;
  }
}
