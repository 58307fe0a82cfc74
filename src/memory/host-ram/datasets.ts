/** How the rows of a dataset are held. `mapped`: arrow files of `datasets`, whose pages the kernel takes back at will. */
export type RowStorage = 'mapped' | 'arrow-in-memory' | 'python-lists';

/** One integer in a Python list, bytes: an 8-byte reference and an int object of 28 bytes in a 32-byte block. */
const LISTED = 8 + 32;
/** Integers up to this one are made once and shared (CPython `_PY_NSMALLPOSINTS`). */
const INT64 = 8;

/** Host RAM of all rows in one process, bytes. `integers` counts every column. */
export function datasetBytes(integers: number, storage: RowStorage): number {
  switch (storage) {
    case 'mapped':
      return 0;
    case 'arrow-in-memory':
      return integers * INT64;
    case 'python-lists':
      return integers * LISTED;
  }
}
