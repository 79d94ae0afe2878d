"""futures.py: a pool of Python processes behind concurrent.futures. The pool spawns its workers (MPI_Comm_spawn) and talks to each from a
thread of its own; the workers are this same file. It needs no Python package: ctypes calls the library, whose constants are
the same with every library of the MPI standard ABI.

    LD_LIBRARY_PATH=build/lib build/bin/mpiexec -n 1 python3 examples/futures.py

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import ctypes
import pickle
import queue
import sys
import threading

# Of the standard ABI: the same values in every library that follows it.
COMM_NULL, COMM_SELF, INFO_NULL, BYTE = 0x100, 0x102, 0x130, 0x247
ANY_TAG, THREAD_MULTIPLE = -2, 4096
TASK, RESULT, HOME = range(3)


class Status(ctypes.Structure):
    _fields_ = [("source", ctypes.c_int), ("tag", ctypes.c_int), ("error", ctypes.c_int), ("internal", ctypes.c_int * 5)]


library = ctypes.CDLL("libmpi_abi.so.1")  # ctypes lets other threads run while a call waits
handle = ctypes.c_void_p


def mpi(name, *arguments):
    """Errors end the job: that is MPI's own default."""
    getattr(library, "MPI_" + name)(*arguments)


def send(what, to, tag, comm):
    data = pickle.dumps(what)
    mpi("Send", data, len(data), handle(BYTE), to, tag, comm)


def receive(source, comm):
    """What was sent, and its tag. A matched probe: no other thread can take the message between the two calls."""
    message, status, size = handle(), Status(), ctypes.c_int()
    mpi("Mprobe", source, ANY_TAG, comm, ctypes.byref(message), ctypes.byref(status))
    mpi("Get_count", ctypes.byref(status), handle(BYTE), ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    mpi("Mrecv", data, size, handle(BYTE), ctypes.byref(message), None)
    return pickle.loads(data.raw), status.tag


class Pool(concurrent.futures.Executor):
    def __init__(self, workers):
        self.tasks = queue.SimpleQueue()
        self.crews, self.threads = [], []
        self.grow(workers)

    def grow(self, workers):
        """Spawns `workers` more workers. The workers of one call leave together, since they share a communicator."""
        comm = handle()
        argv = (ctypes.c_char_p * 2)(__file__.encode(), None)
        mpi("Comm_spawn", sys.executable.encode(), argv, workers, handle(INFO_NULL), 0, handle(COMM_SELF), ctypes.byref(comm), None)
        self.crews.append(comm)
        for worker in range(workers):
            self.threads.append(threading.Thread(target=self.serve, args=(comm, worker)))
            self.threads[-1].start()

    def serve(self, comm, worker):
        """The thread of a worker: hands it one task after the other."""
        while (task := self.tasks.get()) is not None:
            future, *call = task
            if not future.set_running_or_notify_cancel():
                continue
            send(call, worker, TASK, comm)
            (good, value), _ = receive(worker, comm)
            if good:
                future.set_result(value)
            else:
                future.set_exception(value)
        send(None, worker, HOME, comm)

    def submit(self, function, /, *arguments, **named):
        future = concurrent.futures.Future()
        self.tasks.put((future, function, arguments, named))
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        for _ in self.threads:
            self.tasks.put(None)  # behind all tasks
        for thread in self.threads:
            thread.join()
        for comm in self.crews:
            mpi("Comm_disconnect", ctypes.byref(comm))
        self.crews, self.threads = [], []


def work(pool):
    while True:
        call, tag = receive(0, pool)
        if tag == HOME:
            break
        function, arguments, named = call
        try:
            answer = True, function(*arguments, **named)
        except Exception as error:  # the caller's business
            answer = False, error
        send(answer, 0, RESULT, pool)
    mpi("Comm_disconnect", ctypes.byref(pool))


def primes(first, end):
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(max(first, 2), end))


def main():
    with Pool(2) as pool:
        print("primes below 20000:", sum(pool.map(primes, range(0, 20000, 1000), range(1000, 21000, 1000))))
        try:
            pool.submit(primes, 0, "many").result()
        except TypeError as error:
            print("a worker's exception:", error)
        pool.grow(2)
        print("with four workers:", sum(pool.map(primes, range(0, 20000, 1000), range(1000, 21000, 1000))))


if __name__ == "__main__":
    parent, given = handle(), ctypes.c_int()
    mpi("Init_thread", None, None, THREAD_MULTIPLE, ctypes.byref(given))
    mpi("Comm_get_parent", ctypes.byref(parent))
    if parent.value == COMM_NULL:
        main()
    else:
        work(parent)
    mpi("Finalize")
