/** The little of protobuf that OTLP traces need: a reader of fields, bounded in depth and size by its input. */

/** A field: its number, and a varint or fixed64 as bigint, or bytes. */
export interface Field {
  readonly number: number;
  readonly bytes?: Uint8Array;
  readonly value?: bigint;
}

/** Why bytes are no message. */
export class ProtobufError extends Error {}

/** The fields of one message, in order. @throws ProtobufError */
export function* fieldsOf(message: Uint8Array): Generator<Field> {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = message[at++];
      if (byte === undefined) throw new ProtobufError('a number is cut short');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new ProtobufError('a number is longer than 10 bytes');
  };
  while (at < message.length) {
    const key = varint();
    const number = Number(key >> 3n);
    if (number < 1 || number > 536_870_911) throw new ProtobufError(`${number} is no field`);
    switch (Number(key & 7n)) {
      case 0:
        yield { number, value: varint() };
        break;
      case 1:
        if (at + 8 > message.length) throw new ProtobufError('a fixed64 is cut short');
        yield { number, value: view.getBigUint64(at, true) };
        at += 8;
        break;
      case 2: {
        const length = Number(varint());
        if (length > message.length - at) throw new ProtobufError('a field is longer than its message');
        yield { number, bytes: message.subarray(at, at + length) };
        at += length;
        break;
      }
      case 5:
        if (at + 4 > message.length) throw new ProtobufError('a fixed32 is cut short');
        yield { number, value: BigInt(view.getUint32(at, true)) };
        at += 4;
        break;
      default:
        throw new ProtobufError('a field of a kind that is no longer written');
    }
  }
}

const double = new DataView(new ArrayBuffer(8));

/** A fixed64 read as a double. */
export function asDouble(value: bigint): number {
  double.setBigUint64(0, value);
  return double.getFloat64(0);
}
