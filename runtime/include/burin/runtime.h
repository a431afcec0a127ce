/* The C interface of burin's runtime: loads a compiled artifact (.plate) and runs it. The library behind it contains no
 * compiler and needs only the C and C++ standard libraries.
 *
 *   const burin_runtime_api *rt = burin_runtime_get(BURIN_RUNTIME_VERSION);
 *   burin_artifact *artifact;  burin_session *session;
 *   burin_status *s = rt->artifact_load_file("mlp.plate", NULL, &artifact);
 *   if (s) { fprintf(stderr, "%s\n", rt->status_message(s)); rt->status_release(s); return 3; }
 *   s = rt->session_create(artifact, NULL, &session);
 *   int64_t shape[] = {7, 512};
 *   burin_tensor x = {data, shape, 2, BURIN_F32, {0}}, y = {0};
 *   s = rt->session_run(session, &x, 1, &y, 1);      // y.data, y.shape: the session's, until its next run
 *
 * Rules that hold throughout:
 * - Errors. A function that can fail returns a status: NULL is success, anything else must be released. A failed
 *   function changes nothing and leaves its results alone. No exception leaves the library.
 * - Ownership. *_release drops one reference; NULL is allowed. A session keeps its artifact alive. Strings and shapes
 *   that a function returns belong to the object asked and live as long as it does, unless stated otherwise.
 * - Threads. Artifacts may be used from any number of threads at once. A session does one thing at a time: a second
 *   call while it runs is refused with BURIN_BUSY. Make one session per thread; they share code and weights.
 * - Sizes are in elements, `bytes` in bytes, times in nanoseconds.
 * - Option structures start with struct_size = sizeof of the structure, which lets them grow; zero fields mean the
 *   default, and a NULL pointer means all defaults. */
#ifndef BURIN_RUNTIME_H
#define BURIN_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(modernize-use-using,readability-identifier-naming): C names */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BURIN_API __attribute__((visibility("default")))
#else
#define BURIN_API
#endif

/* The version of burin_runtime_api below. Within a version the table only grows at its end (see size). */
#define BURIN_RUNTIME_VERSION 1u

typedef struct burin_status burin_status;
typedef struct burin_artifact burin_artifact;
typedef struct burin_session burin_session;

/* Reasons of a failed call. */
enum {
  BURIN_OK = 0,
  BURIN_INVALID_ARGUMENT = 1, /* the call: a shape, a dtype, a missing pointer */
  BURIN_BAD_ARTIFACT = 2,     /* not a complete, valid artifact of this format version */
  BURIN_UNSUPPORTED = 3,      /* a valid artifact that this machine cannot run */
  BURIN_IO = 4,               /* the operating system refused */
  BURIN_OUT_OF_MEMORY = 5,
  BURIN_BUSY = 6, /* the session is running already */
  BURIN_INTERNAL = 7,
  BURIN_DATA_ERROR = 8 /* an invalid value in a run, such as an index out of range */
};

/* Element types. A bool takes one byte, 0 or 1. */
enum {
  BURIN_F32 = 0,
  BURIN_F64 = 1,
  BURIN_F16 = 2,
  BURIN_BF16 = 3,
  BURIN_I8 = 4,
  BURIN_U8 = 5,
  BURIN_I16 = 6,
  BURIN_I32 = 7,
  BURIN_I64 = 8,
  BURIN_BOOL = 9,
  BURIN_F8E4M3FN = 10, /* 8-bit floats; PyTorch's float8_e4m3fn and float8_e5m2 */
  BURIN_F8E5M2 = 11
};

/* Kinds of devices. */
enum { BURIN_CPU = 0, BURIN_CUDA = 1 };

/* The device of memory: all zeros for host memory, {BURIN_CUDA, 1} for the second GPU. */
typedef struct burin_device {
  uint8_t type;
  uint8_t index;
  uint8_t reserved;
} burin_device;

/* A dense row-major tensor in the caller's memory, of any alignment. Inputs are never written. */
typedef struct burin_tensor {
  void *data;           /* on the device */
  const int64_t *shape; /* rank numbers, in host memory; may be NULL for rank 0 */
  uint32_t rank;
  uint8_t dtype; /* BURIN_F32, … */
  burin_device device;
} burin_tensor;

/* Type of an input or output. */
typedef struct burin_tensor_info {
  const char *name;
  const char *text;     /* "f32[batch, 512]" */
  const char *location; /* "file:line" in the source of the model, or "" */
  const int64_t *dims;  /* rank numbers; -1 if the size depends on the inputs */
  uint32_t rank;
  uint8_t dtype;
  uint8_t reserved[3];
} burin_tensor_info;

/* A size that is known in a run: determined by an axis of an input, or computed by the run, such as the number of boxes
 * that remain after suppression. */
typedef struct burin_symbol_info {
  const char *name;
  int64_t min, max; /* both allowed; max INT64_MAX: no limit */
  uint32_t input;   /* BURIN_COMPUTED: computed by the run */
  uint32_t axis;
  int64_t scale, offset; /* the size of that axis is value * scale + offset */
} burin_symbol_info;

#define BURIN_COMPUTED UINT32_MAX

enum { BURIN_LOG_DEBUG = 0, BURIN_LOG_INFO = 1, BURIN_LOG_WARNING = 2 };

/* Receives messages without a newline. May be called from any thread that uses the runtime. */
typedef struct burin_logger {
  void *ctx;
  void (*log)(void *ctx, int level, const char *message);
} burin_logger;

enum {
  /* Skip the checksum of the weights: start-up time then does not depend on their size. Damaged weights give wrong
   * numbers; they cannot cause an access out of bounds. */
  BURIN_LOAD_TRUST_WEIGHTS = 1u << 0,
  /* artifact_load_memory only: the memory stays valid and unchanged until the artifact is released, so the weights
   * can be used in place (if the memory is 64-byte aligned). */
  BURIN_LOAD_BORROW = 1u << 1
};

typedef struct burin_load_options {
  size_t struct_size;
  uint64_t flags; /* BURIN_LOAD_… */
  burin_logger logger;
} burin_load_options;

/* Allocator for intermediate results of a session and for outputs without data. `allocate` may return NULL. */
typedef struct burin_allocator {
  void *ctx;
  void *(*allocate)(void *ctx, size_t bytes, size_t alignment);
  void (*release)(void *ctx, void *data, size_t bytes);
} burin_allocator;

/* Runs body(body_ctx, lo, hi, worker) over [0, n) in chunks of `grain` and returns when all are done. `worker` is below
 * `threads`, and bodies that run concurrently have different ones. */
typedef struct burin_thread_pool {
  void *ctx;
  void (*parallel_for)(void *ctx, int64_t n, int64_t grain,
                       void (*body)(void *body_ctx, int64_t lo, int64_t hi, int worker), void *body_ctx);
  int threads;
} burin_thread_pool;

typedef struct burin_session_options {
  size_t struct_size;
  int threads; /* 0: the pool shared by the process, sized by its CPU affinity and cgroup limits (BURIN_NUM_THREADS
                  overrides); 1: only the calling thread; more: a separate pool. Results do not depend on it. */
  burin_allocator allocator;
  burin_thread_pool thread_pool; /* used instead of the runtime's pool if parallel_for is set */
  burin_logger logger;
  const char *device; /* NULL or "cpu"; "cuda:0": a GPU that the artifact has code for. Inputs and outputs in host
                         memory are copied there and back; states stay there. */
  void *stream; /* a CUstream of that GPU, which must live as long as the session: all work goes through it. A run whose
                   inputs and outputs are all on the GPU then returns when it has been enqueued, and may be called while
                   the stream is being captured, after a first run with these sizes; a captured run with an invalid
                   value does change its states. NULL: a stream of the session */
} burin_session_options;

/* Bytes of a device. */
typedef struct burin_device_memory {
  uint64_t in_use, peak; /* of tensors, weights, states and intermediate results: current and maximum */
  uint64_t reserved;     /* held by the driver for this process, in use or free */
  uint64_t limit;        /* 0: none */
  uint64_t total;        /* of the device */
  uint64_t tensors, weights, states, intermediate; /* parts of in_use */
} burin_device_memory;

/* One step of a run: a kernel over its tasks. Strings are valid as long as the artifact. */
typedef struct burin_step_profile {
  uint32_t step;     /* index in the plan */
  uint32_t parallel; /* 1: ran on the thread pool */
  const char *kernel;
  const char *location;          /* "file:line" in the source of the model, or "" */
  int64_t start_ns, end_ns;      /* of CLOCK_MONOTONIC */
  int64_t tasks, flops, bytes;   /* work as counted in the plan */
  int64_t iteration, iterations; /* iteration of a loop over parts of the batch, and their number; else 0 and 1 */
  const char *function;          /* the function with the step; private ones belong to branches and loops */
  const char *provider; /* the library that has computed the step instead of the kernel ("cuBLASLt"), or NULL */
} burin_step_profile;

typedef void (*burin_step_callback)(void *ctx, const burin_step_profile *profile);

/* The end of an asynchronous run. `status` (NULL: success) and `outputs` are valid during the call only; outputs
 * without data have memory of the session, valid during the call only. */
typedef void (*burin_done_callback)(void *ctx, const burin_status *status, const burin_tensor *outputs,
                                    uint32_t output_count);

typedef struct burin_runtime_api {
  uint32_t version; /* BURIN_RUNTIME_VERSION */
  uint32_t size;    /* sizeof of the library's table; a function beyond it does not exist */

  /* "burin 0.1.0" */
  const char *(*library_version)(void);
  /* The best target of this machine: "x86-64-v4". */
  const char *(*host_target)(void);

  uint32_t (*status_code)(const burin_status *status); /* BURIN_OK for NULL */
  /* At most six lines: the problem, with names and values, and a way out. Valid until the status is released. */
  const char *(*status_message)(const burin_status *status);
  void (*status_release)(burin_status *status);

  /* Loads and checks an artifact. The weights stay in the file and are mapped: it must not be changed in place while it
   * is loaded (renaming another file over it is allowed). An artifact contains machine code: load only those that
   * you trust. */
  burin_status *(*artifact_load_file)(const char *path, const burin_load_options *options, burin_artifact **artifact);
  /* The same from memory, which is copied as needed (but see BURIN_LOAD_BORROW). */
  burin_status *(*artifact_load_memory)(const void *data, size_t bytes, const burin_load_options *options,
                                        burin_artifact **artifact);
  void (*artifact_release)(burin_artifact *artifact);

  uint32_t (*artifact_input_count)(const burin_artifact *artifact);
  uint32_t (*artifact_output_count)(const burin_artifact *artifact);
  uint32_t (*artifact_symbol_count)(const burin_artifact *artifact);
  /* NULL when the index is out of range. */
  const burin_tensor_info *(*artifact_input)(const burin_artifact *artifact, uint32_t index);
  const burin_tensor_info *(*artifact_output)(const burin_artifact *artifact, uint32_t index);
  const burin_symbol_info *(*artifact_symbol)(const burin_artifact *artifact, uint32_t index);
  /* The shape of an input for given values of all symbols (computed ones are ignored); `shape` has room for its
   * rank. */
  burin_status *(*artifact_input_shape)(const burin_artifact *artifact, uint32_t index, const int64_t *symbol_values,
                                        uint32_t symbol_count, int64_t *shape);
  const char *(*artifact_producer)(const burin_artifact *artifact); /* the compiler: "burin 0.1.0" */
  const char *(*artifact_target)(const burin_artifact *artifact);   /* of the code in use: "x86-64-v3" */
  /* A free-text entry of the artifact, or NULL. */
  const char *(*artifact_metadata)(const burin_artifact *artifact, const char *key);

  burin_status *(*session_create)(burin_artifact *artifact, const burin_session_options *options,
                                  burin_session **session);
  /* Waits for its asynchronous runs. Not from inside a done callback. */
  void (*session_release)(burin_session *session);

  /* Checks input shapes and plans for them, without running; the data pointers may be NULL. Optional before a run: it
   * makes the first run as fast as others, and determines the shapes of the outputs. */
  burin_status *(*session_bind)(burin_session *session, const burin_tensor *inputs, uint32_t input_count);
  /* For the shapes of the latest bind or run; NULL before, and for an index out of range. Valid until the next one.
   * Computed sizes are -1 until a run has computed them. */
  const int64_t *(*session_output_shape)(const burin_session *session, uint32_t index, uint32_t *rank);
  /* Bytes planned for intermediate results, for the shapes of the latest bind or run. */
  uint64_t (*session_arena_bytes)(const burin_session *session);

  /* Runs and returns when the outputs are complete (but see burin_session_options.stream). An output with data must
   * have the right dtype and shape, and must overlap neither an input nor another output. For one without data all
   * other fields are ignored and set: it gets memory of the session, valid until its next run (and so does one that
   * still has that memory); if its device is that of the session, memory there. Pass no data for an output whose shape
   * the run computes: with data, its shape must be exactly the computed one. A run with recent shapes allocates
   * nothing. */
  burin_status *(*session_run)(burin_session *session, const burin_tensor *inputs, uint32_t input_count,
                               burin_tensor *outputs, uint32_t output_count);
  /* Queues a run and returns; runs of a session are executed in order, on a thread of the session, which calls `done`
   * after each, also after a failed one. The tensor descriptions are copied; the data must stay valid until then.
   * Blocks while 64 runs are queued. */
  burin_status *(*session_run_async)(burin_session *session, const burin_tensor *inputs, uint32_t input_count,
                                     const burin_tensor *outputs, uint32_t output_count, burin_done_callback done,
                                     void *ctx);
  /* From the next run on, calls `callback` after each step, on the thread of the run; NULL disables it. */
  burin_status *(*session_set_profile)(burin_session *session, burin_step_callback callback, void *ctx);

  /* Functions. Most artifacts have one, "main". A handle refers to one function of its artifact, after loading to the
   * first: inputs, outputs and symbols are those of this function, and sessions made from the handle run it. */
  uint32_t (*artifact_function_count)(const burin_artifact *artifact);
  const char *(*artifact_function_name)(const burin_artifact *artifact, uint32_t index); /* NULL: out of range */
  /* A handle for another function of the same artifact, released like any other. */
  burin_status *(*artifact_function)(burin_artifact *artifact, const char *name, burin_artifact **function);
  /* A handle that runs another function with the states and memory of `session`; only one may run at a time. */
  burin_status *(*session_function)(burin_session *session, const char *name, burin_session **function);

  /* States: tensors that outlive a run, such as caches and running statistics. Every session has its own, shared by
   * the functions of the artifact; they start with the values in the artifact. A failed run leaves them unchanged.
   */
  uint32_t (*artifact_state_count)(const burin_artifact *artifact);
  const burin_tensor_info *(*artifact_state)(const burin_artifact *artifact, uint32_t index); /* NULL: out of range */
  /* The value, in host memory of the session, valid until the next run. */
  burin_status *(*session_read_state)(const burin_session *session, uint32_t index, burin_tensor *value);
  burin_status *(*session_write_state)(burin_session *session, uint32_t index, const burin_tensor *value);
  /* Restores all states to the values in the artifact. */
  burin_status *(*session_reset_states)(burin_session *session);
  /* Copies all states from another session of the same loaded artifact, which must not run meanwhile. */
  burin_status *(*session_copy_states)(burin_session *session, const burin_session *from);
  /* Along `axis` of a state, element i becomes the old element order[i], as for rows of a cache in beam search. */
  burin_status *(*session_reorder_state)(burin_session *session, uint32_t index, uint32_t axis, const int64_t *order,
                                         uint32_t count);

  /* Devices. GPUs need the CUDA driver; `stream` is a CUstream of the device, or NULL for one of the library's. */
  /* Number of devices of a type: 1 for BURIN_CPU; 0 for BURIN_CUDA without a driver. */
  uint32_t (*device_count)(uint32_t type);
  /* Allocates memory on a device, 64-byte aligned, in stream order; contents undefined. It keeps the device in use. */
  burin_status *(*device_alloc)(burin_device device, size_t bytes, void *stream, void **data);
  /* Frees in stream order. The stream may differ from that of device_alloc if the work there is complete. NULL data is
   * allowed. */
  burin_status *(*device_free)(burin_device device, void *data, void *stream);
  /* Copies between any two devices. With a stream of one of the GPUs it returns when the copy is enqueued, and pinned
   * host memory must not change until it is complete; otherwise it returns when the copy is complete. */
  burin_status *(*device_copy)(burin_device to_device, void *to, burin_device from_device, const void *from,
                               size_t bytes, void *stream);
  /* Waits for all work of a stream. Returns an error of it. */
  burin_status *(*device_synchronize)(burin_device device, void *stream);
  burin_status *(*device_memory)(burin_device device, burin_device_memory *memory);
  /* Makes allocations beyond this amount of the device's memory fail with BURIN_OUT_OF_MEMORY; 0: no limit. Valid while
   * this library has memory on the device. */
  burin_status *(*device_set_memory_limit)(burin_device device, uint64_t bytes);
  /* Waits for enqueued runs, and returns the first error since the last call. */
  burin_status *(*session_synchronize)(burin_session *session);
  /* The value of a state on the device of the session, valid until the next run. */
  burin_status *(*session_state_on_device)(const burin_session *session, uint32_t index, burin_tensor *value);

  /* Writes all states to a file, by name, as safetensors. The write is atomic. */
  burin_status *(*session_save_states)(burin_session *session, const char *path);
  /* Replaces all states by those of a file. It must hold exactly the states of the artifact, with their element types
   * and shapes (BURIN_INVALID_ARGUMENT), and not be damaged (BURIN_BAD_ARTIFACT); otherwise nothing is changed. */
  burin_status *(*session_load_states)(burin_session *session, const char *path);
} burin_runtime_api;

/* The function table of a version, or NULL if this library does not have that version. Never freed. */
BURIN_API const burin_runtime_api *burin_runtime_get(uint32_t version);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-use-using,readability-identifier-naming) */
#endif
