/** NVRTC, NVIDIA's compiler as a library: for rules and maps that no build knew. */
import { OptError } from "@opt/core";
import type { Out } from "./driver";
import { bug } from "./gpu";

/** Functions of libnvrtc. */
export interface CompilerTable {
  nvrtcCreateProgram(program: Out, source: string, name: string, headers: 0, texts: null, names: null): number;
  nvrtcCompileProgram(program: number, count: number, options: BigUint64Array): number;
  nvrtcGetProgramLogSize(program: number, size: Out): number;
  nvrtcGetProgramLog(program: number, log: Uint8Array): number;
  nvrtcGetCUBINSize(program: number, size: Out): number;
  nvrtcGetCUBIN(program: number, image: Uint8Array): number;
  nvrtcDestroyProgram(program: Out): number;
}

export const COMPILER_FUNCTIONS = [
  ...(["nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog"] as const),
  ...(["nvrtcGetCUBINSize", "nvrtcGetCUBIN", "nvrtcDestroyProgram"] as const),
] satisfies readonly (keyof CompilerTable)[];

/** NVRTC_ERROR_COMPILATION: the text is at fault. Anything else is the library's affair: a GPU it does not know, builtins it does not find. */
const COMPILATION = 6;

export interface Compiler {
  /** Machine code for a GPU of this architecture. @throws OptError UNSUPPORTED, INTERNAL; each with the compiler's words */
  compile(source: string, architecture: number): Uint8Array;
}

export function nvrtc(table: CompilerTable, textAddress: (text: string) => number): Compiler {
  const options = new Map<number, BigUint64Array>();
  const optionsOf = (architecture: number) => {
    let addresses = options.get(architecture);
    if (addresses === undefined) {
      const texts = [`--gpu-architecture=sm_${architecture}`, "--fmad=false", "--std=c++17"];
      addresses = BigUint64Array.from(texts, (text) => BigInt(textAddress(text)));
      options.set(architecture, addresses);
    }
    return addresses;
  };
  return {
    compile(source, architecture) {
      const program = new BigUint64Array(1);
      const size = new BigUint64Array(1);
      const bytes = (ask: (size: Out) => number) => {
        ask(size);
        return new Uint8Array(Number(size[0]));
      };
      const flags = optionsOf(architecture);
      let status = table.nvrtcCreateProgram(program, source, "opt.cu", 0, null, null);
      const handle = Number(program[0]);
      if (status === 0) status = table.nvrtcCompileProgram(handle, flags.length, flags);
      if (status !== 0) {
        const log = handle === 0 ? new Uint8Array(0) : bytes((out) => table.nvrtcGetProgramLogSize(handle, out));
        if (log.length > 0) table.nvrtcGetProgramLog(handle, log);
        if (handle !== 0) table.nvrtcDestroyProgram(program);
        const words = Buffer.from(log).toString().replaceAll("\0", "").trim();
        const problem = `NVRTC ended with status ${status} for sm_${architecture}${words === "" ? "." : `: ${words}`}`;
        if (status === COMPILATION) throw bug(problem);
        const advice = "Another version of libnvrtc may know it (OPT_CUDA_LIBRARIES names its folder).";
        throw new OptError("UNSUPPORTED", "cuda", problem, advice);
      }
      const image = bytes((out) => table.nvrtcGetCUBINSize(handle, out));
      table.nvrtcGetCUBIN(handle, image);
      table.nvrtcDestroyProgram(program);
      return image;
    },
  };
}
