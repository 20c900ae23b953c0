/** MindSpore's protobuf: `Value { tag = 1; TensorProto { dims = 1; tensor_type = 2; tensor_content = 3 } tensor = 2 }`, repeated as field 1. */
import type { StoredDType } from "../../format/dtype";

/** `tensor_type` and the element type it means. */
export const MINDSPORE_DTYPES: Record<string, StoredDType> = {
  Int8: "I8",
  UInt8: "U8",
  Int16: "I16",
  UInt16: "U16",
  Int32: "I32",
  UInt32: "U32",
  Int64: "I64",
  UInt64: "U64",
  Float16: "F16",
  BFloat16: "BF16",
  Float32: "F32",
  Float64: "F64",
  Bool: "BOOL",
};

export function mindsporeType(dtype: StoredDType): string | undefined {
  return Object.keys(MINDSPORE_DTYPES).find((name) => MINDSPORE_DTYPES[name] === dtype);
}

/** Text is UTF-32, little-endian. */
export const MINDSPORE_TEXT = "str";

/** The text in which our own files keep the step and the values that MindSpore has no form for, as JSON. */
export const METADATA_TAG = "opt-checkpoint";

/** The last 17 bytes of a file with a checksum: these, then ten big-endian bytes of CRC-32. */
export const CRC_MARK = "crc_num";
export const CRC_TRAILER = CRC_MARK.length + 10;

/** The first 32 bits of encrypted files, by version. */
export const ENCRYPTED_MAGIC = [0x7f3a5ed8, 0x7f3a5ed9, 0x7f3a5eda];

/** MindSpore writes larger tensors as several values of one tag, each with the whole tensor's dims. */
export const LARGEST_PIECE = 512 * 1024 * 1024;
